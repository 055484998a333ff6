package membership

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		childMain()
		return
	}
	code := m.Run()
	if err := leaked(time.Minute); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leaked looks until memberlist's last probes have run out.
func leaked(within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		err := goleak.Find()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

var testFederation = [16]byte{1, 2, 3}

// quick is LAN's timing, four times as fast.
func quick() *timing {
	t := LAN.timing()
	t.probe, t.ack, t.gossip = 150*time.Millisecond, 75*time.Millisecond, 25*time.Millisecond
	t.syncing, t.rejoin, t.reclaim = 500*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
	t.stream, t.hello, t.spread = 2*time.Second, time.Second, 2*time.Second
	t.keyDelay = time.Second
	return &t
}

// node is a Gossip under test, with its log.
type node struct {
	*Gossip
	test *testing.T
	log  *logBuffer
}

// logBuffer keeps what is logged. The zero value may be used.
type logBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	wrote chan struct{} // closed by the next line; nil while nobody waits
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote != nil {
		close(l.wrote)
		l.wrote = nil
	}
	return l.buf.Write(p)
}

// await waits for a line that contains with.
func (l *logBuffer) await(t *testing.T, with string) []string {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		l.mu.Lock()
		if l.wrote == nil {
			l.wrote = make(chan struct{})
		}
		wrote := l.wrote
		l.mu.Unlock()
		if found := l.lines(with); len(found) > 0 {
			return found
		}
		select {
		case <-wrote:
		case <-timeout:
			t.Fatalf("no line with %q in %q", with, l.lines(""))
		}
	}
}

func (l *logBuffer) lines(with string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

// open starts a site; through are members to join through.
func open(t *testing.T, site string, edit func(*Config), through ...*node) *node {
	t.Helper()
	log := &logBuffer{}
	cfg := Config{
		Site: site, Federation: testFederation, Listen: "127.0.0.1:0", timing: quick(),
		Meta:   Meta{HTTP: "127.0.0.1:7700", Peer: "127.0.0.1:7800"},
		Logger: zerolog.New(log).Level(zerolog.InfoLevel),
		Join: func() []string {
			var addrs []string
			for _, n := range through {
				addrs = append(addrs, n.Addr().String())
			}
			return addrs
		},
	}
	if edit != nil {
		edit(&cfg)
	}
	g, err := Open(cfg)
	for again := 0; errors.Is(err, syscall.EADDRINUSE) && again < 100; again++ {
		// A process that another test starts has this one's sockets until it executes its program, those that were
		// just closed, too.
		<-time.After(10 * time.Millisecond)
		g, err = Open(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return &node{Gossip: g, test: t, log: log}
}

func (n *node) member(site string) (Member, bool) { return n.Member(site) }

// await waits, event by event, until the site is seen so.
func (n *node) await(site string, so func(Member) bool) Member {
	n.test.Helper()
	timeout := time.After(time.Minute)
	for {
		if m, ok := n.member(site); ok && so(m) {
			return m
		}
		select {
		case <-n.Events():
		case <-timeout:
			n.test.Fatalf("%s does not see %s so; it sees %+v; log:\n%s", n.cfg.Site, site, n.Members(), n.log.lines(""))
		}
	}
}

func (n *node) awaitState(site string, s State) Member {
	n.test.Helper()
	return n.await(site, func(m Member) bool { return m.State == s })
}

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
