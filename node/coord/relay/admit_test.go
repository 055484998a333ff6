package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// leaderless knows of no leader.
type leaderless struct{ Backend }

func (leaderless) Lead() (to Peer, self bool) { return Peer{}, false }
func (leaderless) Closed() error              { return coord.ErrClosed }

func large(seq uint64) command.Command {
	return command.Command{
		ID: command.ID{Site: "a", Incarnation: 1, Seq: seq},
		Body: &command.Submit{Jobs: []command.JobSpec{{
			Num: seq, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
			Payload: make([]byte, command.MaxPayload/2),
		}}},
	}
}

// TestCallsWithoutALeaderAreBounded: what waits for a leader has a bound in bytes, and
// what is beyond it waits with its caller, or is refused with it.
func TestCallsWithoutALeaderAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 2 * maxPending / command.MaxPayload
		ctx, cancel := context.WithCancel(t.Context())
		c := New(t.Context(), Config{Site: "a", Backend: leaderless{}}, testGroup, testGroup)
		var queued, refused atomic.Int64
		for i := range uint64(most + 20) {
			go func() {
				switch _, err := c.Propose(ctx, large(i+1)); {
				case errors.Is(err, coord.ErrNoLead):
					queued.Add(1)
				case errors.Is(err, coord.ErrRefused):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if held := c.pending.memory.held; held > maxPending || held < maxPending-command.MaxPayload ||
			len(c.pending.calls) > most {
			t.Errorf("%d calls of %d bytes wait", len(c.pending.calls), held)
		}
		cancel()
		synctest.Wait()
		if q, r := queued.Load(), refused.Load(); q == 0 || r == 0 || q+r != most+20 {
			t.Errorf("%d waited for a leader, %d for room", q, r)
		}
		if held := c.pending.memory.held; held != 0 {
			t.Errorf("%d bytes are held for nobody", held)
		}
	})
}

// TestCloseEndsCallsThatWaitForRoom: they are not ordered.
func TestCloseEndsCallsThatWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := New(ctx, Config{Site: "a", Backend: leaderless{}}, testGroup, testGroup)
		c.pending.memory = newBudget(1, 1, 1)
		for i := range uint64(2) {
			go func() {
				if _, err := c.Propose(t.Context(), large(i+1)); !errors.Is(err, coord.ErrClosed) {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if len(c.pending.calls) != 1 { // a lone one has room, whatever its size
			t.Errorf("%d calls wait", len(c.pending.calls))
		}
		cancel()
		c.End()
		synctest.Wait()
	})
}

// TestAbandonedCallIsHeldWhileItIsSent: its bytes wait in the link to the leader.
func TestAbandonedCallIsHeldWhileItIsSent(t *testing.T) {
	p := newPending(1)
	c := &proposal{
		done: make(chan struct{}), ids: []command.ID{{Site: "a", Incarnation: 1, Seq: 1}}, cmds: [][]byte{nil},
		bytes: 1000,
	}
	if !p.admit(t.Context(), c) || p.add(c) != nil || len(p.takeQueue()) != 1 {
		t.Fatal("not taken")
	}
	p.abandon(c)
	if p.memory.held != c.cost() {
		t.Errorf("%d bytes held while the call is sent", p.memory.held)
	}
	p.recordOutcome(c, Unknown, 0)
	if p.memory.held != 0 {
		t.Errorf("%d bytes held behind its outcome", p.memory.held)
	}
}
