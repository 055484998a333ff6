package relay

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// port serves a site that hands out no connection but counts them.
func port(t *testing.T, site string, out *logged) (addr string, taken chan Preamble) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMux(ln, site, time.Second, zerolog.New(out), &Network{})
	m.SetGroup([16]byte{1})
	taken = make(chan Preamble, 8)
	for _, k := range []Kind{KindRaft, KindForward, KindJoin} {
		m.Handle(k, func(conn net.Conn, p Preamble) {
			taken <- p
			_ = conn.Close()
		})
	}
	m.Serve()
	t.Cleanup(m.Close)
	return ln.Addr().String(), taken
}

// TestConnectionNamesTheSiteItMeans: a connection that means another site than
// the one that answers reaches no handler, whatever its kind; who dialed learns
// who answered before it has sent anything.
func TestConnectionNamesTheSiteItMeans(t *testing.T) {
	out := &logged{}
	addr, taken := port(t, "site-2", out)
	d := Dialer{Net: &Network{}, Site: "site-1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, k := range []Kind{KindRaft, KindForward, KindJoin} {
		_, err := d.Dial(ctx, Peer{Site: "site-5", Addr: addr}, k, [16]byte{1})
		if !errors.Is(err, ErrOtherSite) || !strings.Contains(err.Error(), `"site-2", not site-5`) || !strings.Contains(err.Error(), addr) {
			t.Errorf("kind %d, meant for another site: %v", k, err)
		}
	}
	for _, text := range []string{"site-1 means site", "site-5", "this is site-2", "correct `advertise`"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the log does not say %q: %s", text, out)
		}
	}
	if _, err := d.Dial(ctx, Peer{Addr: addr}, KindRaft, [16]byte{1}); !errors.Is(err, ErrOtherSite) {
		t.Errorf("a vote or an entry for nobody: %v", err)
	}
	if len(taken) > 0 {
		t.Errorf("a handler got %+v", <-taken)
	}
	for _, site := range []string{"", "site-2"} {
		conn, err := d.Dial(ctx, Peer{Site: site, Addr: addr}, KindJoin, [16]byte{})
		if err != nil {
			t.Fatalf("join meant for %q: %v", site, err)
		}
		if _, err := conn.Write([]byte{0}); err != nil { // a handler gets what begins to speak
			t.Fatal(err)
		}
		if p := <-taken; p.Means != site || p.Site != "site-1" {
			t.Errorf("%+v, not meant for %q", p, site)
		}
		_ = conn.Close()
	}
}

// TestDialEndsWithItsContext: a member that takes connections and answers no
// greeting, as one that is stopped does, holds nobody up for longer.
func TestDialEndsWithItsContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d := Dialer{Net: &Network{}, Site: "a"}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if conn, err := d.Dial(ctx, Peer{Site: "b", Addr: ln.Addr().String()}, KindRaft, [16]byte{1}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("%v, %v", conn, err)
	}
}
