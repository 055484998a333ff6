package broker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// While a publication is being synced, submissions wait and everything else
// goes on; what waited then goes first, in its order.
func TestSubmitGate(t *testing.T) {
	sub := func(n int) core.Event { return core.SubmitEvent{Reqs: make([]node.Request, n)} }
	sizes := func(evs []core.Event) (n []int) {
		for _, ev := range evs {
			if s, ok := ev.(core.SubmitEvent); ok {
				n = append(n, len(s.Reqs))
			} else {
				n = append(n, 0)
			}
		}
		return n
	}
	g := newSubmitGate(false)
	g.early = false
	if got := sizes(g.pass([]core.Event{sub(1), core.TickEvent{}})); !slices.Equal(got, []int{1, 0}) {
		t.Fatalf("an open gate let %v through, want all", got)
	}
	g.syncing = true
	for _, step := range []struct{ in, want []core.Event }{
		{[]core.Event{sub(2), core.TickEvent{}, sub(3)}, []core.Event{core.TickEvent{}}},
		{[]core.Event{sub(4)}, nil},
	} {
		if got, want := sizes(g.pass(step.in)), sizes(step.want); !slices.Equal(got, want) {
			t.Fatalf("a closed gate let %v through, want %v", got, want)
		}
	}
	got := sizes(g.pass(append(g.open(nil), sub(5))))
	if want := []int{2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Fatalf("the opened gate let %v through, want %v", got, want)
	}
	if got := g.open(nil); len(got) != 0 {
		t.Fatalf("opened again, the gate gave out %d events twice", len(got))
	}
}

// A broker that has just started takes nothing before the federation has taken
// it in: its data may be an old copy.
func TestSubmitGateAfterTheStart(t *testing.T) {
	g := newSubmitGate(false)
	if got := g.pass([]core.Event{core.SubmitEvent{}, core.TickEvent{}}); len(got) != 1 {
		t.Fatalf("%d events passed before the federation was found, want the tick", len(got))
	}
	if got := g.open(nil); len(got) != 0 {
		t.Fatalf("a sync let %d submissions through", len(got))
	}
	got := g.pass([]core.Event{core.LeaseEvent{}, core.SubmitEvent{}})
	if _, lease := got[0].(core.LeaseEvent); len(got) != 3 || !lease {
		t.Fatalf("with the lease pass %v, want it first and both submissions", got)
	}
}

// published is a turn that publishes what so many clients submit.
func published(g *submitGate, seq uint64, clients int) (result core.ResultEvent) {
	cmds := []command.Command{{ID: command.ID{Site: "a", Incarnation: 1, Seq: seq}, Body: &command.Submit{}}}
	g.publishes(slices.Repeat([]core.Event{submission()}, clients), cmds)
	g.open(nil)
	return core.ResultEvent{Cmds: cmds}
}

func submission() core.Event { return core.SubmitEvent{Reqs: make([]node.Request, 1)} }

// passed submits at the gate, and returns how many events it lets through.
func passed(g *submitGate, evs ...core.Event) int { return len(g.pass(evs)) }

// While a publication is ordered, submissions wait for its result, and then a little for those whom it answers: all
// share the next one.
func TestSubmissionsShareThePublicationAfterTheOneOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSubmitGate(false)
		g.early = false
		result := published(&g, 1, 2)
		if n := passed(&g, submission()); n != 0 {
			t.Fatalf("%d events passed before the publication was ordered", n)
		}
		<-time.After(4 * time.Millisecond)
		if n := passed(&g, result, submission()); n != 1 {
			t.Fatalf("%d events passed with the result, want it alone: one of two is back", n)
		}
		if n := passed(&g, submission()); n != 3 {
			t.Fatalf("%d events passed when all were back, want 3", n)
		}
	})
}

// Whoever is answered need not come back: the others wait a quarter of the time that the answer took.
func TestSubmissionsDoNotWaitForWhoDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSubmitGate(false)
		g.early = false
		result := published(&g, 1, 2)
		passed(&g, submission())
		<-time.After(4 * time.Millisecond)
		passed(&g, result)
		answered := time.Now()
		<-g.alarm.C
		if n := len(g.release(nil)); n != 1 || time.Since(answered) != time.Millisecond {
			t.Fatalf("%d submissions passed %v after the answer, want 1 after 1 ms", n, time.Since(answered))
		}
		if n := passed(&g, submission()); n != 1 {
			t.Fatal("nothing is on its way, and a submission is held")
		}
	})
}

// Without a result, as without a quorum, submissions are held for the time of a flight, and many jobs not at all.
func TestSubmissionsWaitForNoResultThatDoesNotCome(t *testing.T) {
	for far, flight := range map[bool]time.Duration{false: nearFlight, true: farFlight} {
		synctest.Test(t, func(t *testing.T) {
			g := newSubmitGate(far)
			g.early = false
			published(&g, 1, 1)
			began := time.Now()
			passed(&g, submission())
			<-g.alarm.C
			if n := len(g.release(nil)); n != 1 || time.Since(began) != flight {
				t.Errorf("%d submissions passed after %v, want 1 after %v", n, time.Since(began), flight)
			}
			published(&g, 2, 1)
			if n := passed(&g, core.SubmitEvent{Reqs: make([]node.Request, manyJobs)}); n != 1 {
				t.Error("many jobs are held")
			}
		})
	}
}

// TestReleasedJobsHoldNoSubmission: whatever is published beside it, a submission is held for a flight at most: jobs
// that waited for others, and are published one after the other, hold none.
func TestReleasedJobsHoldNoSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSubmitGate(false)
		g.early = false
		published(&g, 1, 0) // nobody submitted it
		if n := passed(&g, submission()); n != 1 {
			t.Fatal("a submission is held by a job that waited for others")
		}
		published(&g, 2, 1)
		began := time.Now()
		passed(&g, submission())
		for seq := uint64(3); ; seq++ {
			select {
			case <-g.alarm.C:
			case <-time.After(10 * time.Millisecond):
			}
			published(&g, seq, 1) // never the newest that is ordered
			if len(g.held) == 0 {
				break
			}
			if time.Since(began) > time.Second {
				t.Fatal("a submission is held as long as others are published")
			}
		}
	})
}

// Jobs that are held are acknowledged once they are synced: nothing else is waited for.
func TestHeldJobsKeepNoSubmissionWaiting(t *testing.T) {
	g := newSubmitGate(false)
	g.early = false
	g.publishes([]core.Event{submission()}, nil)
	g.open(nil)
	if n := passed(&g, submission()); n != 1 {
		t.Error("a submission waits for a result that nobody asked for")
	}
}
