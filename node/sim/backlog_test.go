package sim

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/sched"
)

// manyHomeRuns is a case in which more home runs of site 0 end in second 10 than one
// batch reports. In second 30 one core frees at site 1, and both sites wait for it:
// FAIRSHARE gives it to site 1 if all of site 0's runs are in the ledger (10 seconds of
// use for each core, beside 7), and to site 0 if only the first batch is (4 beside 7).
func manyHomeRuns() *Case {
	const cores = 2500
	c := &Case{Cores: []int64{cores, 10}, Params: Params(sched.FairShare), Seed: 1}
	for i := range int32(cores) {
		c.Tasks = append(c.Tasks, Task{Run: 10, Width: 1, Job: 1, Index: i})
	}
	for i := range int32(10) {
		c.Tasks = append(c.Tasks, Task{Run: 7, Width: 1, Site: 1, Job: 2, Index: i})
	}
	return &Case{
		Cores: c.Cores, Params: c.Params, Seed: c.Seed, WholeShare: true,
		Tasks: append(
			c.Tasks,
			Task{Release: 14, Run: 100, Width: cores, Job: 3, Background: true},
			Task{Release: 14, Run: 100, Width: 9, Site: 1, Job: 4, Background: true},
			Task{Release: 14, Run: 16, Width: 1, Site: 1, Job: 5, Background: true},
			Task{Release: 15, Run: 10, Width: 1, Job: 6},
			Task{Release: 15, Run: 10, Width: 1, Site: 1, Job: 7},
		),
	}
}

// TestManyHomeRunsAreReported: what a batch of home runs has no room for is reported in
// the seconds after it, as by a live broker, though nothing else happens in them.
func TestManyHomeRunsAreReported(t *testing.T) {
	c := manyHomeRuns()
	p, err := newPlayer(c, fsm.New())
	if err == nil {
		err = p.found()
	}
	var left []int
	for err == nil && p.now < 13 {
		second, _ := p.nextSecond()
		err = p.second(t.Context(), second)
		if second >= 10 {
			left = append(left, p.sites[0].driver.Unreported())
		}
	}
	if err != nil || len(left) < 3 || left[0] != 1500 || left[1] != 500 || left[2] != 0 {
		t.Errorf("not reported in seconds 10, 11, 12: %d (%v)", left, err)
	}
	out, err := Play(c)
	if err != nil {
		t.Fatal(err)
	}
	n := len(c.Tasks)
	if first, second := out.Start[n-1], out.Start[n-2]; first != 30 || second <= first {
		t.Errorf("site 1's task starts at %d, site 0's at %d, want 30 and later", first, second)
	}
}
