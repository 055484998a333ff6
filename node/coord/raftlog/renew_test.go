package raftlog

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
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

// fakeLead answers every question on a connection with the same answer.
func fakeLead(conn net.Conn, a answer) {
	defer conn.Close()
	if _, err := readPreamble(conn); err != nil {
		return
	}
	for {
		b, err := readFrame(conn, nil, maxFrame)
		if err != nil {
			return
		}
		q, err := parseQuestion(b)
		if err != nil {
			return
		}
		if _, err := conn.Write(endFrame(appendAnswer(frame(nil), q.id, a))); err != nil {
			return
		}
	}
}

// A lease acknowledgement from a former lead: it names an older term than the
// asker knows, and does not count.
func TestFormerLeadAcknowledges(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	cfg := c.config("b", coordtest.NewMachine())
	dial := cfg.net.dial
	var mu sync.Mutex
	var stale *answer // of a fake lead, nil = the real one
	var wg sync.WaitGroup
	cfg.net.dial = func(ctx context.Context, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if stale == nil {
			return dial(ctx, addr)
		}
		here, there := net.Pipe()
		a := *stale
		wg.Go(func() { fakeLead(there, a) })
		return here, nil
	}
	b, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	register(t, b)
	c.leader(t).Grant(&yes{})
	lie := func(a *answer) {
		mu.Lock()
		stale = a
		mu.Unlock()
		b.forward.drop("") // the next question dials
	}
	term := b.raft.CurrentTerm()
	for _, a := range []answer{
		{code: answerOK, index: 1, term: term - 1},
		{code: answerRefused, term: term - 1, text: "no"},
	} {
		lie(&a)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := b.Renew(short, coord.Renewal{Site: "b", Incarnation: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an answer of term %d, in term %d: %v", a.term, term, err)
		}
		cancel()
	}
	lie(nil)
	if err := b.Renew(patience(t), coord.Renewal{Site: "b", Incarnation: 1}); err != nil {
		t.Errorf("the lead itself: %v", err)
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
	conn, err := (&dialer{net: &network{}, site: "x"}).dial(patience(t), a.Addr(), kindForward, a.line.id)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
	if _, err := conn.Write(endFrame(appendQuestion(frame(nil), ask{kind: frameRenew, id: 5, incarnation: 3}))); err != nil {
		t.Fatal(err)
	}
	b, err := readFrame(conn, nil, maxFrame)
	if err != nil || b[0] != frameAnswer {
		t.Fatalf("answer %x, %v", b, err)
	}
	id, got, err := parseAnswer(b[1:])
	if err != nil || id != 5 || got.code != answerOK || got.term != a.raft.CurrentTerm() {
		t.Errorf("answer %d %+v, %v", id, got, err)
	}
	if want := (coord.Renewal{Site: "x", Incarnation: 3}); y.last != want {
		t.Errorf("the grantor heard of %+v", y.last)
	}
}

// What counts as a confirmation: voters only, and only what was asked after the
// call began. raft's VerifyLeader gets both wrong.
func TestConfirmation(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	tr := a.trans
	const term = 1 << 40 // of no traffic but ours
	voters := []raft.ServerID{"a", "b", "cc"}
	answers := func(id raft.ServerID, round uint64, resp raft.AppendEntriesResponse) {
		tr.answered(id, "127.0.0.1:1", &raft.AppendEntriesRequest{Term: term}, &resp, round)
	}
	begin := func() (round uint64, end chan error) {
		ctx, cancel := context.WithTimeout(t.Context(), coordtest.Patience)
		t.Cleanup(cancel)
		tr.mu.Lock()
		before := tr.round
		tr.mu.Unlock()
		end = make(chan error, 1)
		go func() { end <- tr.confirm(ctx, term, func() []raft.ServerID { return voters }) }()
		for {
			tr.mu.Lock()
			round = tr.round
			tr.mu.Unlock()
			if round > before {
				return round, end
			}
		}
	}
	well := raft.AppendEntriesResponse{Term: term, Success: true}
	round, end := begin()
	answers("b", round-1, well) // sent before the call, heard only now
	answers("d", round, well)   // no voter
	answers("b", round-1, well)
	select {
	case err := <-end:
		t.Fatalf("confirmed by an old answer and a non-voter: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	answers("cc", round, well)
	if err := <-end; err != nil {
		t.Errorf("not confirmed by a majority: %v", err)
	}
	_, end = begin()
	answers("cc", round, raft.AppendEntriesResponse{Term: term + 1})
	if err := <-end; !errors.Is(err, errDeposed) {
		t.Errorf("a voter knows a later term: %v", err)
	}
}

// A lead that is cut off confirms nothing, though it still thinks it leads.
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
