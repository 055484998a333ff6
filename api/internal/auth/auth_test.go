package auth

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"
)

func TestSessionsAreBounded(t *testing.T) {
	s := newSessions()
	now := time.Unix(0, 0)
	s.now = func() time.Time { now = now.Add(time.Millisecond); return now }
	first, second := s.begin("a"), s.begin("b")
	for range maxSessions - 1 {
		s.begin("c")
	}
	if len(s.open) != maxSessions || s.token(first) != "" || s.token(second) != "b" {
		t.Errorf("%d sessions; the first %q, the second %q", len(s.open), s.token(first), s.token(second))
	}
	now = now.Add(sessionLife)
	if s.token(second) != "" {
		t.Error("it does not end")
	}
	if s.token("") != "" || s.token("x") != "" {
		t.Error("a session that nobody opened")
	}
}

// The table of failures is bounded, whoever asks from however many addresses.
func TestFailuresAreBounded(t *testing.T) {
	f := newFailures()
	now := time.Unix(100, 0)
	f.now = func() time.Time { return now }
	for i := range 3 * maxAddresses {
		f.note(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if len(f.counts) > maxAddresses+1 {
		t.Errorf("%d addresses", len(f.counts))
	}
	if f.note("192.0.2.1:1") {
		t.Error("those beyond the bound have no common count")
	}
	now = now.Add(time.Second)
	if !f.note("192.0.2.1:1") || len(f.counts) != 1 {
		t.Error("a second is not forgotten")
	}
}

func TestSenders(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32",
		"[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "": "invalid Prefix", "@": "invalid Prefix",
	} {
		if got := sender(remote).String(); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}

// Two brokers of one machine do not take each other's cookies.
func TestCookieNames(t *testing.T) {
	names := map[string]bool{}
	for _, host := range []string{"127.0.0.1:7700", "127.0.0.1:7701", "broker.example", "a:b;c=d"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		names[cookieName(r)] = true
	}
	if len(names) != 3 || !names["cloudshare-7700"] || !names["cloudshare-0"] {
		t.Errorf("%v", names)
	}
}
