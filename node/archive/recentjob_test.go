package archive

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestEarlierOf: the attempts of some tasks of one job, the latest first.
func TestEarlierOf(t *testing.T) {
	now := time.Now()
	r := NewRecent("a", now)
	job := command.JobID{Site: "a", Num: 7}
	for i := range uint32(30) {
		r.ended.push(Attempt{
			Job: job, Task: i % 10, Number: 1 + i/10, Count: 1,
			Ended: now.Add(time.Duration(i) * time.Second),
		})
		r.ended.push(Attempt{Job: command.JobID{Site: "b", Num: 7}, Task: i % 10, Number: 1, Count: 1})
	}
	r.ended.push(Attempt{Job: job, Task: 3, Count: 2}) // never started
	got := r.EarlierOf(job, 3, 5, 5)
	if len(got) != 5 {
		t.Fatalf("%d attempts", len(got))
	}
	for i, want := range [][2]uint32{{4, 3}, {3, 3}, {4, 2}, {3, 2}, {4, 1}} {
		if got[i].Task != want[0] || got[i].Number != want[1] || got[i].Job != job {
			t.Errorf("%d: task %d attempt %d", i, got[i].Task, got[i].Number)
		}
	}
}
