package replica

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// What is remembered of declines is bounded, and the latest of it stays.
func TestDeclinesAreBounded(t *testing.T) {
	f := newFeed(0)
	id := func(i int) command.JobID { return command.JobID{Site: "a", Num: uint64(i + 1)} }
	hand := func(job command.JobID, site, reason string) {
		f.add([]fsm.Event{{
			Index: 1, Kind: fsm.EventTaskRequeued, End: fsm.EndDeclined, Job: job, Site: site,
			Reason: reason,
		}})
	}
	const all = 3 * maxDeclines
	for i := range all {
		hand(id(i), "b", "full")
		if i%3 == 0 {
			f.add([]fsm.Event{{Index: 1, Kind: fsm.EventJobEnded, Job: id(i)}})
		}
	}
	last := id(all - 1)
	for i := range maxDeclineSites + 2 {
		hand(last, fmt.Sprintf("site-%d", i), "first")
	}
	hand(last, "site-2", "then")
	d := &f.declines
	if len(d.by) > maxDeclines || len(d.order) > 2*maxDeclines {
		t.Errorf("%d jobs, %d in order", len(d.by), len(d.order))
	}
	if _, ok := f.LastDecline(id(0)); ok {
		t.Error("a job that has ended is remembered")
	}
	if _, ok := f.LastDecline(id(all - 2)); !ok {
		t.Error("a late job is forgotten")
	}
	words := f.Declined(last)
	if got := fmt.Sprint(words); got != "[site-3 declined it last: first site-4 declined it last: first site-5 declined it last: first site-2 declined it last: then]" {
		t.Error(got)
	}
	if f.reset(9); len(f.Declined(last)) != 0 {
		t.Error("a snapshot replaced the state, and its jobs' words stayed")
	}
}
