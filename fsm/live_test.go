package fsm

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// onlooker is a broker's knowledge of its assignments: what AssignmentsSince returned, without what the broker
// reported itself.
type onlooker struct {
	seen  uint64
	known map[command.AttemptRef]Assignment
}

// follow reads what is new.
func (f *onlooker) follow(s *State, site string) {
	changed, whole := s.AssignmentsSince(site, f.seen)
	f.seen = s.SiteChange(site)
	if whole {
		clear(f.known)
	}
	for _, a := range changed {
		f.known[a.AttemptRef] = a
	}
}

// reported applies what its site reported about its attempts.
func (f *onlooker) reported(s *State, site string, refs []command.AttemptRef) {
	for _, ref := range refs {
		if _, still := s.Assignment(site, ref); !still {
			delete(f.known, ref)
		}
	}
}

// orders renders what a broker must do, by job and task.
func orders(as []Assignment) (out []string) {
	for _, a := range as {
		out = append(out, fmt.Sprint(a.AttemptRef, a.Machine, a.Stop, a.StopWhy, a.BoundMs, a.Payload))
	}
	slices.Sort(out)
	return out
}

func (f *onlooker) check(t tb, s *State, site string) {
	f.follow(s, site)
	got, want := orders(slices.Collect(maps.Values(f.known))), orders(s.Assignments(site))
	if !slices.Equal(got, want) {
		t.Fatalf("entry %d: by what changed %s has\n%v\nand in all\n%v", s.index, site, got, want)
	}
}

// TestChangesAddUp: an onlooker that follows the changes at any times, with the state restored in between,
// knows the same as one that looks at everything.
func TestChangesAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		fs := map[string]*onlooker{}
		for _, site := range modelSites {
			fs[site] = &onlooker{known: map[command.AttemptRef]Assignment{}}
		}
		read := 0
		look := func(t *rapid.T) {
			m.t = t
			for ; read < len(m.past); read++ {
				c := m.past[read]
				switch body := c.Body.(type) {
				case *command.Complete:
					for _, e := range body.Attempts {
						fs[c.ID.Site].reported(m.twin, c.ID.Site, []command.AttemptRef{e.AttemptRef})
					}
				case *command.Decline:
					fs[c.ID.Site].reported(m.twin, c.ID.Site, body.Attempts)
				}
			}
			for site := range m.w.inc {
				fs[site].check(t, m.twin, site)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"submit": m.submit, "submit2": m.submit, "offer": m.offer, "started": m.started, "bound": m.bound,
			"complete": m.complete, "decline": m.decline, "cancel": m.cancel, "lost": m.lost, "register": m.register,
			"forget": m.forget, "suspect": m.suspect, "tick": m.tick, "restore": m.restore, "look": look, "look2": look,
		})
		look(rt)
	})
}

// TestAssignmentsSinceIsShort: one change costs one assignment, whatever runs, and a reported start none.
func TestAssignmentsSinceIsShort(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("a", w.offering("a", 100))
	w.submit("b", w.job("b", 90))
	at := w.s.SiteChange("a")
	first := w.s.Assignments("a")[0].AttemptRef
	w.must("a", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: first}}})
	if w.s.SiteChange("a") != at {
		t.Fatal("a reported start is nothing that its site must look at")
	}
	w.must("a", &command.Complete{Attempts: []command.Ended{{AttemptRef: first, Outcome: command.Succeeded}}})
	w.submit("b", w.job("b", 1))
	w.must("b", &command.Cancel{Job: command.JobID{Site: "b", Num: 1}, Task: 7})
	changed, whole := w.s.AssignmentsSince("a", at)
	if whole || len(changed) != 2 || changed[0].Task != 7 || !changed[0].Stop || changed[1].Job.Num != 2 {
		t.Fatalf("whole %v, %+v", whole, changed)
	}
	if _, is := w.s.Assignment("a", first); is {
		t.Fatal("what has ended is no assignment")
	}
	if all, whole := w.s.AssignmentsSince("a", w.s.Index()+1); !whole || len(all) != 90 {
		t.Fatalf("from an entry to come: whole %v, %d", whole, len(all))
	}
	if none, whole := w.s.AssignmentsSince("zz", 0); !whole || none != nil {
		t.Fatal("an unknown site has nothing")
	}
}
