package own

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/after"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/core/lend"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/core/usage"
	"github.com/cloudshare/cloudshare/node/journal"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/seal"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// memory is a journal in memory, in the order in which it was written.
type memory map[journal.Bucket][]pair

type pair struct{ key, value []byte }

func (m memory) put(b journal.Bucket, key, value []byte) { m[b] = append(m[b], pair{key, value}) }

// putJob adds a home job.
func (m memory) putJob(num uint64, tasks ...homejobs.Task) {
	put := func(b journal.Bucket, key []byte, v any) {
		value, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		m.put(b, key, value)
	}
	put(record.BucketHome, record.Number(num), command.JobSpec{Num: num, Count: uint32(len(tasks))})
	for i := range tasks {
		put(record.BucketTasks, record.TaskKey(num, uint32(i)), tasks[i])
	}
}

func (m memory) Get(journal.Bucket, []byte) ([]byte, error) { return nil, nil }

func (m memory) Each(b journal.Bucket, f func(key, value []byte) error) error {
	for _, p := range m[b] {
		if err := f(p.key, p.value); err != nil {
			return err
		}
	}
	return nil
}

// endedArrays is a journal with n ended home jobs of so many tasks.
func endedArrays(n, tasks int) memory {
	m := memory{}
	for num := range uint64(n) {
		list := make([]homejobs.Task, tasks)
		for i := range list {
			list[i] = homejobs.Task{
				State: fsm.TaskSucceeded, Attempt: 1, StartedMs: int64(1000 + i),
				EndedMs: int64(9000 + i),
			}
		}
		m.putJob(num+1, list...)
	}
	return m
}

// nothingAsked is a Gates of which nobody has asked anything.
type nothingAsked struct{}

func (nothingAsked) WasHeld(uint64) bool                      { return false }
func (nothingAsked) Cancelled(uint64) ([]fsm.TaskRun, string) { return nil, "" }

// jobsOf are the jobs of a site that starts on a journal.
func jobsOf(t *testing.T, m memory) *Jobs {
	t.Helper()
	now, out, k := &turn.Clock{}, turn.NewOutbox("a"), keys.NewBook()
	set := machines.NewSet(node.DefaultExposure(), now, trouble.NewTroubles())
	runs, rows, l := attempts.NewBook("a", now, &set, nil), usage.NewBook(&out, now), lend.NewBook(&out, &set)
	h := homejobs.NewBook(homejobs.Site{
		Name: "a", Now: now, Machines: &set, Attempts: &runs, Usage: &rows,
		Tallies: trouble.NewTallies(),
	})
	p := publish.NewBook("a", now, &out, &k, nil, nil, nil)
	held := after.NewBook("a", now)
	if err := held.Recover(m, func(uint64) string { return "" }, &turn.Effects{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Recover(m); err != nil {
		t.Fatal(err)
	}
	if err := p.Recover(m); err != nil {
		t.Fatal(err)
	}
	o := New("a", &out, &h, &p, &held, &l, &rows, func() bool { return true }, nil, nothingAsked{})
	return &o
}

// Found by review: the view of a home array looked at all tasks for each of
// them, on the core's goroutine, and a list did so for every array.
func TestAListCostsTheCoreLittle(t *testing.T) {
	const jobs, tasks = 50, Steps / 2
	o := jobsOf(t, endedArrays(jobs, tasks))
	looks, listed := 0, 0
	for below := uint64(0); looks == 0 || below > 0; looks++ {
		var got []Record
		if got, below = o.Records(below, "", 1000); len(got)*tasks > 2*Steps {
			t.Fatalf("one look passed over %d tasks", len(got)*tasks)
		}
		listed += len(got)
	}
	if listed != jobs || looks != jobs/2 {
		t.Errorf("%d jobs listed by %d looks, want %d by %d", listed, looks, jobs, jobs/2)
	}
	got, rest := o.Records(0, "succeeded", 1000)
	if len(got) != jobs || rest != 0 {
		t.Fatalf("what has ended and was listed before is looked at again: %d jobs, the rest below %d", len(got), rest)
	}
	v := got[0].View("a", seal.Outsider{})
	if v.ID.Num != jobs || v.State != "succeeded" || v.Counts["succeeded"] != tasks ||
		v.StartedAt != unixMs(1000) || v.EndedAt != unixMs(9000+tasks-1) {
		t.Errorf("shown as %+v", v)
	}
	if got, rest = o.Records(0, "running", 1000); len(got) != 0 || rest != 0 {
		t.Errorf("%d run, the rest below %d", len(got), rest)
	}
}

// A page goes on where the last one ended, whatever was passed over.
func TestOwnJobsAreListedOnce(t *testing.T) {
	j := endedArrays(3, 1) // 1 to 3
	for _, group := range [][]uint64{{8, 9}, {4}, {6, 7}} {
		cmd := &command.Submit{}
		for _, num := range group {
			cmd.Jobs = append(cmd.Jobs, command.JobSpec{
				Num: num, Count: 1, Need: command.Resources{MilliCPU: 1000},
				MaxAttempts: 1,
			})
		}
		j.put(record.BucketPublishing, record.Number(group[0]),
			command.Append(nil, command.Command{ID: command.ID{Site: "a", Incarnation: 1, Seq: 1}, Body: cmd}))
	}
	j.putJob(10, homejobs.Task{})
	o := jobsOf(t, j)
	for state, want := range map[string][]uint64{"": {10, 9, 8, 7, 6, 4, 3, 2, 1}, "queued": {10, 9, 8, 7, 6, 4}, "succeeded": {3, 2, 1}} {
		for limit := 1; limit < 12; limit++ {
			var got []uint64
			for below, first := uint64(0), true; first || below > 0; first = false {
				var list []Record
				list, below = o.Records(below, state, limit)
				for i := range list {
					got = append(got, list[i].Spec.Num)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q by %d: %v, want %v", state, limit, got, want)
			}
		}
	}
}
