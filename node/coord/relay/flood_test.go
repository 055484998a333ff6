package relay

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// gated is a backend that leads, and settles an entry for each word through its gate.
type gated struct {
	stuck
	gate    chan struct{}
	mu      sync.Mutex
	entries []Header
}

func (g *gated) Append(_ uint64, _, ext []byte) (wait func() (Outcome, uint64)) {
	var h Header
	if err := ParseHeader(ext, &h); err != nil {
		panic(err)
	}
	g.mu.Lock()
	g.entries = append(g.entries, h)
	n := uint64(len(g.entries))
	g.mu.Unlock()
	return func() (Outcome, uint64) {
		<-g.gate
		return Ordered, n
	}
}

// of returns the first entry with a call of an origin, and how many there are in all.
func (g *gated) of(origin uint64) (first, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	is := func(h Header) bool {
		return slices.ContainsFunc(h.calls, func(c call) bool { return c.origin == origin })
	}
	return slices.IndexFunc(g.entries, is), len(g.entries)
}

// least is the smallest command of a site.
func least(site string, seq uint64) []byte {
	return command.Append(nil, command.Command{
		ID: command.ID{Site: site, Incarnation: 1, Seq: seq}, Body: &command.Leave{},
	})
}

// callFrame is a frame of calls with so many commands each.
func callFrame(site string, origin uint64, calls, commands int) []byte {
	all, cmds := make([]*proposal, calls), slices.Repeat([][]byte{least(site, 1)}, commands)
	for i := range all {
		all[i] = &proposal{seq: uint64(i), cmds: cmds}
	}
	return EndFrame(appendCalls(Frame(nil), origin, all, nil))
}

// answered sends frames and a question, and returns once the answer is there: whatever was before it is in the queue.
func answered(t *testing.T, conn net.Conn, site string, frames ...[]byte) {
	t.Helper()
	q := EndFrame(appendQuestion(Frame(nil), leaderQuestion{kind: frameRemove, id: 1, site: site}))
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(slices.Concat(append(frames, q)...)); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFrame(conn, nil, MaxFrame); err != nil || b[0] != frameAnswer {
		t.Fatalf("no answer: %v, %v", b, err)
	}
}

// TestFloodDelaysNobody: sites that send whatever the leader takes have the others' calls,
// its own among them, wait for the entries in flight, not for all that they have sent;
// and what they hold of its memory keeps nobody out.
func TestFloodDelaysNobody(t *testing.T) {
	backend := &gated{stuck: stuck{freed: make(chan struct{})}, gate: make(chan struct{})}
	c, addr := leaderEndOf(t, backend, backend.freed, newBudgets(), zerolog.Nop())
	flood(t, addr, 1024, func(site string) []byte { return callFrame(site, 7, 1, 1024) })
	_, before := backend.of(7)
	answered(t, dialForward(t, addr, "honest"), "honest", callFrame("honest", 8, 1, 1))
	var own atomic.Bool
	c.seq.submit("lead", item{
		calls: []call{{origin: 9, commands: 1}}, cmds: [][]byte{least("lead", 1)}, commands: 1, bytes: 20,
		done: func(Outcome, uint64) { own.Store(true) },
	})
	c.seq.mu.Lock()
	waits := c.seq.queue.load.commands
	c.seq.mu.Unlock()
	if waits < 50*MaxEntryCommands {
		t.Errorf("only %d commands wait", waits)
	}
	close(backend.gate)
	eventually(t, "the honest calls are ordered", func() bool {
		honest, _ := backend.of(8)
		return honest >= 0 && own.Load()
	})
	for origin := uint64(8); origin <= 9; origin++ {
		if at, _ := backend.of(origin); at > before+1 {
			t.Errorf("calls of origin %d stand in entry %d, %d were sent before they came", origin, at, before)
		}
	}
}

// TestQuotaHoldsOneSiteOnly: what is over a site's quota waits, though the leader is idle, and is
// ordered as the quota grows; the others, and the judgements of the same site, wait for what is in flight only.
func TestQuotaHoldsOneSiteOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quick{}
		s := newSequencer(q, nil, Timing{
			Slots: 4, Gather: 256, EntryBytes: 1 << 20,
			Quota: Quota{Commands: 1000, Bytes: 1 << 30, Burst: time.Second},
		}, Hooks{}, func() {})
		ctx, cancel := context.WithCancel(t.Context())
		go s.order(ctx)
		go s.settleEntries()
		begun := time.Now()
		one := item{calls: []call{{commands: 1}}, commands: 1, cmds: [][]byte{{1}}, bytes: 1}
		of := func(done func()) item {
			it := one
			it.done = func(Outcome, uint64) { done() }
			return it
		}
		var flooded, last atomic.Int64
		for range 5000 {
			s.submit("flood", of(func() {
				flooded.Add(1)
				last.Store(int64(time.Since(begun)))
			}))
		}
		for i := range 300 {
			sent := time.Now()
			it, site := of(func() {
				if d := time.Since(sent); d > 5*time.Millisecond/2 { // the entries in flight, and its own
					t.Errorf("call %d waited %v", i, d)
				}
			}), "honest"
			if i%2 > 0 {
				it.ahead, site = true, "flood"
			}
			s.submit(site, it)
			<-time.After(10 * time.Millisecond)
		}
		if n, want := flooded.Load(), int64(4000); n < want-100 || n > want+100 {
			t.Errorf("after 3 s %d calls of the flood were ordered, want %d", n, want)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		n, by := flooded.Load(), time.Duration(last.Load())
		if n != 5000 || by < 3900*time.Millisecond || by > 4100*time.Millisecond {
			t.Errorf("%d calls of the flood were ordered by %v, want 5000 by 4 s", n, by)
		}
		if d := s.heldFor()["flood"]; d < 3900*time.Millisecond || d > 4100*time.Millisecond || len(s.heldFor()) > 1 {
			t.Errorf("held: %v, want the flood for 4 s", s.heldFor())
		}
		cancel()
		synctest.Wait()
	})
}

// TestRefusedWhileHeld: calls that wait for their quota are refused like all others when
// the leader is none any more.
func TestRefusedWhileHeld(t *testing.T) {
	s := newSequencer(&quick{}, nil, Timing{
		Slots: 4, Gather: 256, EntryBytes: 1 << 20, Quota: Quota{Commands: 1, Burst: time.Millisecond},
	}, Hooks{}, func() {})
	outcomes := map[Outcome]int{}
	for i := range 3 * turnWeight / commandWeight {
		it := item{
			calls: []call{{commands: 1}}, commands: 1, cmds: [][]byte{{1}}, bytes: 1,
			ahead: i == 0, term: uint64(i & 1),
			done: func(o Outcome, _ uint64) { outcomes[o]++ },
		}
		s.submit("a", it)
	}
	e, _ := s.takeEntryCalls(1)
	finish(e.items, Ordered, 1)
	if held := len(s.queue.held); held != 1 {
		t.Fatalf("%d sites are held", held)
	}
	s.refuseAll()
	want := fmt.Sprint(map[Outcome]int{Ordered: 1 + turnWeight/commandWeight, Refused: 2*turnWeight/commandWeight - 1})
	if got := fmt.Sprint(outcomes); got != want {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if s.queue.load != (load{}) || len(s.queue.held)+len(s.queue.turns) > 0 {
		t.Errorf("left: %+v", s.queue)
	}
}

// eventually returns once something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it never came to be that %s", what)
		}
	}
}
