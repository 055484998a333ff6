package auth

import (
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
