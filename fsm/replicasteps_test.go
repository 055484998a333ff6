package fsm

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// TestTieOfTheOwnSiteCountsAllLanes: the lanes of a live replica are in the order in which they were
// created, those of a restored one ordered by their oldest job. A replica that counted only up to the first
// that fits would cut the match elsewhere.
func TestTieOfTheOwnSiteCountsAllLanes(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.submit("a", w.job("a", 50))
	wide := func() (jobs []command.JobSpec) {
		for i := range 10 {
			j := w.job("b", 1)
			j.Need.MilliCPU = int64(100+i) * 1000
			jobs = append(jobs, j)
		}
		return jobs
	}
	early := wide()
	w.submit("b", early...)
	w.submit("b", w.job("b", 50))
	w.submit("b", wide()...)
	for _, j := range early {
		w.must("b", &command.Cancel{Job: command.JobID{Site: "b", Num: j.Num}, Task: -1})
	}
	twin, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	offer := w.cmd("b", w.offering("b", 4, 4, 4, 4, 4))
	w.one(w.s, 100, offer)
	w.one(twin, 100, offer)
	sameSteps(t, w.s, twin)
}

// TestGoneMachinesCountNoSteps: machines that were once offered and run nothing any more are in no replica,
// restored or not. A live one used to keep them for a while.
func TestGoneMachinesCountNoSteps(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 1000
	w := newWorld(t, p, "a", "b", "c")
	cores := make([]int64, 401)
	for i := range cores {
		cores[i] = 1
	}
	w.must("b", w.offering("b", cores...))
	w.submit("a", w.job("a", 401))
	var ends []command.Ended
	for _, a := range w.s.Assignments("b") {
		ends = append(ends, ended(a, command.Succeeded, 1))
	}
	w.must("b", w.offering("b", 1)) // 400 go, each with a task
	w.must("c", w.offering("c", 4, 4, 4, 4, 4, 4, 4, 4, 4, 4))
	w.submit("a", w.job("a", 40)) // fills c
	for ; len(ends) > 0; ends = ends[min(len(ends), 100):] {
		w.must("b", &command.Complete{Attempts: ends[:min(len(ends), 100)]})
	}
	for k := range int64(12) {
		j := w.job("a", 1)
		j.Need.MilliCPU, j.Need.MemMiB = 4000-k*100, k*100
		w.submit("a", j)
	}
	w.at(w.base + 30000)
	twin, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	if live, restored := w.s.byName["b"], twin.byName["b"]; len(live.machines) != 1 || len(live.former) > 0 ||
		len(restored.former) > 0 {
		t.Fatalf("%d machines and %d former ones, restored %d and %d", len(live.machines), len(live.former), len(restored.machines), len(restored.former))
	}
	for range 30 {
		w.one(w.s, 76)
		w.one(twin, 76)
		sameSteps(t, w.s, twin)
	}
}

func sameSteps(t *testing.T, live, twin *State) {
	t.Helper()
	if live.Steps().Used != twin.Steps().Used || live.Hash() != twin.Hash() {
		t.Fatalf("entry %d: %d steps, a restored replica's %d; equal hashes: %t", live.index, live.Steps().Used, twin.Steps().Used, live.Hash() == twin.Hash())
	}
}

// TestSubmissionsSearchNothingBehindDeclinedJobs bars each site from everything that waits except one job
// of its own, behind as many owners' jobs that all are barred from. With 200 of each, one entry of 1000
// submissions used to make 40 million searches: 3 s.
func TestSubmissionsSearchNothingBehindDeclinedJobs(t *testing.T) {
	const sites, owners, n = 20, 20, 1000
	w := newWorld(t, params(), "a", "y")
	var idle []*site
	for i := range sites {
		name := fmt.Sprintf("s%d", i)
		w.register(name)
		w.must(name, w.offering(name, 1))
		idle = append(idle, w.s.byName[name])
	}
	w.submitMany("a", sites) // fill them
	var declined []uint64
	for i := range owners {
		name := fmt.Sprintf("o%d", i)
		w.register(name)
		w.submit(name, w.job(name, 1))
		declined = append(declined, *w.s.byName[name].lanes[0].top().seqs.First())
	}
	w.submitMany("a", sites)
	for _, seq := range declined {
		for _, x := range idle {
			w.s.bar(seq, w.s.mutJob(seq), x)
		}
	}
	i := 0
	for seq := range w.s.byName["a"].lanes[0].top().seqs.From(store.Place{}) {
		for k, x := range idle {
			if k != i {
				w.s.bar(*seq, w.s.mutJob(*seq), x)
			}
		}
		i++
	}
	var jobs []command.JobSpec
	for i := range n {
		j := w.job("y", 1)
		j.Priority = int32(i % 2 * i) // half of them each in its own queue
		jobs = append(jobs, j)
	}
	before := w.s.sought
	w.submit("y", jobs...)
	if got := w.s.sought - before; got > n {
		t.Errorf("%d searches for %d submissions", got, n)
	}
}
