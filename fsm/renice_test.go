package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// serve has site a's machine of one core run what it is given, one task after the other, and returns the jobs'
// numbers in the order in which they ran.
func (w *world) serve(tasks int) (nums []uint64) {
	for range tasks {
		a := w.s.Assignments("a")
		if len(a) != 1 {
			w.t.Fatalf("%d assigned after %v", len(a), nums)
		}
		nums = append(nums, a[0].Job.Num)
		w.must("a", &command.Complete{Attempts: []command.Ended{ended(a[0], command.Succeeded, 1)}})
	}
	return nums
}

// TestLessNiceGoFirst: of an owner's tasks those of the least nice run first, an array's as well as a job's; among
// them the highest priority decides, then who came first. Renice changes that of what waits.
func TestLessNiceGoFirst(t *testing.T) {
	w := newWorld(t, params(), "a")
	for _, n := range []struct {
		count    uint32
		priority int32
		nice     uint32
	}{{3, 0, 0}, {3, 5, 2}, {1, 0, 1}, {1, 9, 1}} {
		j := w.job("a", n.count)
		j.Priority, j.Nice = n.priority, n.nice
		w.submit("a", j)
	}
	w.must("a", w.offering("a", 1))
	if got, want := w.serve(2), []uint64{1, 1}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	w.must("a", &command.Renice{Jobs: []command.Nice{{Num: 1, Nice: 3}, {Num: 77, Nice: 1}}})
	w.must("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Failed, 1)}})
	w.check()
	if got, want := w.serve(2), []uint64{4, 3}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	s, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	w.check()
	w.must("a", &command.Renice{Jobs: []command.Nice{{Num: 2, Nice: 0}}})
	if v, _ := w.s.Job(command.JobID{Site: "a", Num: 2}); v.Spec.Nice != 0 || v.Spec.Priority != 5 {
		t.Errorf("shown with priority %d, nice %d", v.Spec.Priority, v.Spec.Nice)
	}
	if got, want := w.serve(3), []uint64{2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

// TestReniceOfAnother: a site has a say about its own jobs alone.
func TestReniceOfAnother(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.submit("a", w.job("a", 1))
	w.must("b", &command.Renice{Jobs: []command.Nice{{Num: 1, Nice: 7}}})
	if v, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); v.Spec.Nice != 0 {
		t.Errorf("another site made it nice by %d", v.Spec.Nice)
	}
}

// TestOrderIsThatOfNiceAndPriority: orders compare as less nice, then higher priority do, and split into both again.
func TestOrderIsThatOfNiceAndPriority(t *testing.T) {
	draw := func(t *rapid.T) (priority int32, nice uint32) {
		return rapid.Int32Range(-command.MaxPriority, command.MaxPriority).Draw(t, "priority"),
			rapid.Uint32Range(0, command.MaxNice).Draw(t, "nice")
	}
	rapid.Check(t, func(t *rapid.T) {
		p, n := draw(t)
		q, o := draw(t)
		if first := n < o || n == o && p > q; first != (command.Order(p, n) > command.Order(q, o)) {
			t.Fatalf("priority %d nice %d against priority %d nice %d", p, n, q, o)
		}
		if r, m := command.SplitOrder(command.Order(p, n)); r != p || m != n {
			t.Fatalf("priority %d nice %d became %d and %d", p, n, r, m)
		}
	})
}

// TestReniceOfRunning: a job that is made nicer while it runs, having passed a gate before, and then waits again, is
// the same to a replica that was restored meanwhile. The gate of its old queue still let it pass.
func TestReniceOfRunning(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 2))
	for range 5 {
		j := w.job("a", 1)
		j.MaxAttempts = 5
		w.submit("a", j)
	}
	of := func(num uint64) Assignment {
		for _, a := range w.s.Assignments("b") {
			if a.Job.Num == num {
				return a
			}
		}
		t.Fatalf("job %d is not at b: %+v", num, w.s.Assignments("b"))
		return Assignment{}
	}
	fail := func(num uint64) *command.Complete {
		return &command.Complete{Attempts: []command.Ended{ended(of(num), command.Failed, 1)}}
	}
	w.must("b", &command.Decline{Reason: "busy", Attempts: []command.AttemptRef{of(1).AttemptRef}})
	w.must("b", fail(2))
	w.must("a", &command.Renice{Jobs: []command.Nice{{Num: 2, Nice: 5}}})
	other, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	batch := &command.Batch{Term: 1, Commands: []command.Command{w.cmd("b", fail(2))}}
	for _, s := range []*State{w.s, other} {
		if _, err := s.Apply(batch); err != nil {
			t.Fatal(err)
		}
	}
	if w.s.Hash() != other.Hash() {
		t.Fatal("the restored replica differs")
	}
}

// TestReniceToTheSame: a job that waits, and is made as nice as it is, stays open to a site that searched past it while
// it ran elsewhere. The site's gate forgot it, and only a restored replica still gave it the job.
func TestReniceToTheSame(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("b", w.offering("b", 1))
	for range 5 {
		j := w.job("a", 1)
		j.MaxAttempts = 5
		w.submit("a", j)
	}
	w.must("c", w.offering("c", 1)) // b has job 1, c has job 2
	at := func(site string, num uint64) Assignment {
		as := w.s.Assignments(site)
		if len(as) != 1 || as[0].Job.Num != num {
			t.Fatalf("at %s: %+v, want job %d", site, as, num)
		}
		return as[0]
	}
	end := func(site string, num uint64, how command.Outcome) {
		w.must(site, &command.Complete{Attempts: []command.Ended{ended(at(site, num), how, 1)}})
	}
	w.must("b", &command.Decline{Reason: "busy", Attempts: []command.AttemptRef{at("b", 1).AttemptRef}})
	end("c", 2, command.Failed)
	at("c", 1) // which is barred from b; job 2 waits behind b's search
	w.must("a", &command.Renice{Jobs: []command.Nice{{Num: 2, Nice: 0}}})
	w.check()
	end("b", 3, command.Succeeded)
	at("b", 2)
}
