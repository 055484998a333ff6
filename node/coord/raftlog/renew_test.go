package raftlog

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// yes grants everything and keeps the last renewal.
type yes struct {
	mu   sync.Mutex
	last coord.Renewal
}

func (y *yes) Received(r coord.Renewal, _ uint64) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.last = r
	return true
}

func (*yes) Confirmed(coord.Renewal, uint64) bool { return true }

// fakeLead answers every question on a connection with a code, raft index 1 and a
// term.
func fakeLead(conn net.Conn, code byte, term uint64) {
	defer conn.Close()
	if _, err := relay.ReadPreamble(conn); err != nil {
		return
	}
	for {
		q, err := relay.ReadFrame(conn, nil, relay.MaxFrame)
		if err != nil || len(q) < 2 {
			return
		}
		a := append(relay.Frame(nil), 5, q[1], code, 1)
		a = append(binary.AppendUvarint(a, term), 0)
		if _, err := conn.Write(relay.EndFrame(a)); err != nil {
			return
		}
	}
}

// A lease acknowledgement from a former leader: it names an older term than the
// asker knows, and does not count.
func TestFormerLeadAcknowledges(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	cfg := c.config("b", coordtest.NewMachine())
	dial := cfg.Net.Dial
	var mu sync.Mutex
	stale := -1 // the code that a fake leader answers with; -1: ask the real one
	var former uint64
	var wg sync.WaitGroup
	cfg.Net.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if stale < 0 {
			return dial(ctx, addr)
		}
		here, there := net.Pipe()
		code, term := byte(stale), former
		wg.Go(func() { fakeLead(there, code, term) })
		return here, nil
	}
	b, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	register(t, b)
	c.leader(t).Grant(&yes{})
	lie := func(code int) {
		mu.Lock()
		stale, former = code, b.raft.CurrentTerm()-1
		mu.Unlock()
		b.Calls.Redial()
	}
	term := b.raft.CurrentTerm()
	for code, what := range []string{0: "yes", 2: "no"} {
		if what == "" {
			continue
		}
		lie(code)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := b.Renew(short, coord.Renewal{Site: "b", Incarnation: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of term %d, in term %d: %v", what, term-1, term, err)
		}
		cancel()
	}
	lie(-1)
	if err := b.Renew(patience(t), coord.Renewal{Site: "b", Incarnation: 1}); err != nil {
		t.Errorf("the leader itself: %v", err)
	}
	wg.Wait()
}

// A broker renews for itself only: the site is the one that opened the
// connection.
func TestRenewalOfTheConnection(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	y := &yes{}
	a.Grant(y)
	register(t, a)
	c.leader(t)
	conn := greet(t, a)
	defer conn.Close()
	b := exchange(t, conn, []byte{6, 5, 3}) // renew, question 5, incarnation 3
	term, _ := binary.Uvarint(b[min(4, len(b)):])
	if len(b) < 5 || b[0] != 5 || b[1] != 5 || b[2] != 0 || term != a.raft.CurrentTerm() {
		t.Errorf("answer %x", b)
	}
	if want := (coord.Renewal{Site: "x", Incarnation: 3}); y.last != want {
		t.Errorf("the grantor heard of %+v", y.last)
	}
}

// A leader that is cut off confirms nothing, though it still thinks it leads.
func TestCutLeadConfirmsNothing(t *testing.T) {
	c := newCluster(t)
	for _, s := range []string{"a", "b", "cc"} {
		c.open(t, s)
	}
	lead := c.leader(t)
	lead.Grant(&yes{})
	c.Cut(lead.cfg.Site)
	short, cancel := context.WithTimeout(t.Context(), 2*c.time.lease)
	defer cancel()
	if err := lead.Renew(short, coord.Renewal{Site: lead.cfg.Site, Incarnation: 1}); err == nil {
		t.Error("a lease without a quorum")
	}
	if _, err := lead.Sync(short); err == nil {
		t.Error("a current read without a quorum")
	}
}
