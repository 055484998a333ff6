package after

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/journal"
	"github.com/cloudshare/cloudshare/node/record"
)

func pending(uint64) string { return "" }

func nobody(uint64) string { return "" }

func specOf(num uint64) command.JobSpec {
	return command.JobSpec{Num: num, Count: 1, Need: command.Resources{MilliCPU: 1000}, Payload: make([]byte, 120)}
}

// TestFanCostsEachEdgeOnce: of 1 → n → 1 each job is released once, the last one after all others, in parts; and an
// outcome is one record, however many wait for it.
func TestFanCostsEachEdgeOnce(t *testing.T) {
	now, fx := turn.Clock{Wall: time.Unix(1, 0)}, &turn.Effects{}
	b := NewBook("a", &now)
	const n = jobspec.MaxAfter
	var all []Dep
	for i := range uint64(n) {
		b.Hold(specOf(i+2), []Dep{{Num: 1}}, "", pending, fx)
		all = append(all, Dep{Num: i + 2})
	}
	b.Hold(specOf(n+2), all, "", pending, fx)
	fx.Writes = nil
	b.Saw(1, "succeeded", fx)
	if len(fx.Writes) != 1 || len(b.due) != n {
		t.Fatalf("%d writes, %d jobs are due", len(fx.Writes), len(b.due))
	}
	for range 4 {
		if got := b.Release(n/4, fx); len(got) != n/4 {
			t.Fatalf("%d released", len(got))
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(n) {
		if len(b.due) > 0 {
			t.Fatal("the last one is due too early")
		}
		b.Saw(i+2, "succeeded", fx)
	}
	got := b.Release(10, fx)
	if len(got) != 1 || got[0].Spec.Num != n+2 || len(b.targets)+len(b.jobs)+len(b.looks) != 0 {
		t.Errorf("released %d; left are %d targets, %d jobs", len(got), len(b.targets), len(b.jobs))
	}
}

// TestOldEndsAreForgotten: of jobs that waited in vain the newest are remembered, and what still waits for a forgotten
// one knows its outcome.
func TestOldEndsAreForgotten(t *testing.T) {
	now, fx := turn.Clock{Wall: time.Unix(1, 0)}, &turn.Effects{}
	b := NewBook("a", &now)
	b.maxEnded = 2
	for i := range uint64(4) {
		b.Hold(specOf(i+2), []Dep{{Num: 1}}, "", pending, fx)
	}
	b.Hold(specOf(9), []Dep{{Num: 2, When: jobspec.WhenAny}, {Num: 8}}, "", pending, fx)
	b.Saw(1, "failed", fx)
	if got := b.End(10, fx); len(got) != 4 || b.Find(2) != nil || b.Find(3) != nil || b.Find(5).Held() {
		t.Errorf("%d ended, kept are %v", len(got), b.ended)
	}
	if err := b.Check(); err != nil || b.Outcome(2) != "cancelled" {
		t.Errorf("%v, outcome %q", err, b.Outcome(2))
	}
}

// TestEndedJobsAreAwaitedByNobody: what has waited for a job that ended counts no more, though it waits for others.
func TestEndedJobsAreAwaitedByNobody(t *testing.T) {
	now, fx := turn.Clock{Wall: time.Unix(1, 0)}, &turn.Effects{}
	b := NewBook("a", &now)
	b.Hold(specOf(3), []Dep{{Num: 1}, {Num: 2}}, "", pending, fx)
	if first, all := b.Waiting(1, 10); all != 1 || len(first) != 1 {
		t.Errorf("%v of %d wait for job 1", first, all)
	}
	b.Saw(1, "succeeded", fx)
	if first, all := b.Waiting(1, 10); all != 0 || len(first) != 0 {
		t.Errorf("job 1 has ended: %v of %d wait for it", first, all)
	}
	if _, all := b.Waiting(2, 10); all != 1 {
		t.Errorf("%d wait for job 2", all)
	}
}

// TestRoomForHeldJobs: one user's held jobs leave half of the room to others.
func TestRoomForHeldJobs(t *testing.T) {
	now := turn.Clock{}
	b := NewBook("a", &now)
	js := specOf(7)
	b.amounts.Add("alice", amount{jobs: MaxHeld / partsOfUser, bytes: 1}, 1)
	if err := b.Room(&js, 1, "alice"); !errors.Is(err, node.ErrFull) || !strings.Contains(err.Error(), "of user alice") {
		t.Error(err)
	}
	if err := errors.Join(b.Room(&js, 1, "bob"), b.Room(&js, 1, "")); err != nil {
		t.Error(err)
	}
	b.amounts.Add("", amount{bytes: maxBytes - b.amounts.Sum().bytes}, 1)
	if err := b.Room(&js, 1, ""); !errors.Is(err, node.ErrFull) {
		t.Error(err)
	}
}

// TestDamagedRecordsAreRefused: a job that waits for itself or a later one is of no broker's making.
func TestDamagedRecordsAreRefused(t *testing.T) {
	now := turn.Clock{}
	for _, v := range []string{
		"", "{}", `{"spec":{"Num":5}}`, `{"spec":{"Num":5},"after":[{"job":5}]}`, `{"spec":{"Num":5},"after":[{"job":6}]}`,
		`{"spec":{"Num":4},"after":[{"job":1}]}`, `{"spec":{"Num":5},"inputs":"lost"}`, `{"spec":{"Num":5},"after":[{"job":1,"when":9}]}`,
	} {
		b := NewBook("a", &now)
		if err := b.recoverJob(5, []byte(v), nobody); err == nil {
			t.Errorf("%s is taken", v)
		}
	}
}

// TestInputsAreCounted: a job that awaits its inputs is due with them alone, and counts by the spec that it has then.
func TestInputsAreCounted(t *testing.T) {
	now, fx := turn.Clock{Wall: time.Unix(1, 0)}, &turn.Effects{}
	b := NewBook("a", &now)
	b.HoldForInputs(specOf(2), nil, "alice", pending, fx)
	b.HoldForInputs(specOf(3), []Dep{{Num: 1}}, "alice", pending, fx)
	if got := b.Awaiting(); len(got) != 2 || len(b.Release(9, fx)) > 0 {
		t.Fatalf("%v", got)
	}
	for _, num := range []uint64{2, 3} {
		more := specOf(num)
		more.Payload = make([]byte, 1000)
		b.Brought(more, fx)
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Release(9, fx); len(got) != 1 || got[0].Spec.Num != 2 || len(got[0].Spec.Payload) != 1000 {
		t.Errorf("%+v", got)
	}
	b.Saw(1, "succeeded", fx)
	if got := b.Release(9, fx); len(got) != 1 || b.amounts.Sum() != (amount{}) || len(b.Awaiting()) > 0 {
		t.Errorf("%+v %+v", got, b.amounts.Sum())
	}
}

// BenchmarkHeld measures memory and a start with a hundred thousand held jobs, each of which waits for the two before,
// and with ten thousand that wait for 64 each.
func BenchmarkHeld(b *testing.B) {
	for _, c := range []struct{ jobs, deps uint64 }{{100_000, 2}, {10_000, 64}} {
		b.Run(fmt.Sprintf("%d jobs after %d each", c.jobs, c.deps), func(b *testing.B) {
			for b.Loop() {
				measureHeld(b, c.jobs, c.deps)
			}
		})
	}
}

func measureHeld(t *testing.B, jobs, deps uint64) {
	j, err := record.OpenWith(journal.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	now, before := turn.Clock{Wall: time.Unix(1, 0)}, heap()
	b := NewBook("a", &now)
	begin := processor()
	for i := range jobs {
		fx := &turn.Effects{}
		var on []Dep
		for d := range min(deps, 100+i) {
			on = append(on, Dep{Num: 100 + i - d})
		}
		b.Hold(specOf(101+i), on, "", pending, fx)
		b.told = nil
		if err := j.Commit(fx.Writes); err != nil {
			t.Fatal(err)
		}
	}
	held := processor() - begin
	memory := heap() - before
	begin = processor()
	again := NewBook("a", &now)
	if err := again.Recover(j, nobody, &turn.Effects{}); err != nil {
		t.Fatal(err)
	}
	recovered := processor() - begin
	begin = processor()
	steps := 0
	for num := uint64(1); again.Held() > 0; num++ {
		fx := &turn.Effects{}
		again.Saw(num, "succeeded", fx)
		again.Release(1000, fx)
		again.told = nil
		steps++
	}
	released := processor() - begin
	for name, v := range map[string]float64{
		"held-ns/job": float64(held) / float64(jobs), "held-B/job": float64(memory) / float64(jobs),
		"start-ms": float64(recovered.Milliseconds()), "release-ns/job": float64(released) / float64(jobs),
	} {
		t.ReportMetric(v, name)
	}
	if steps == 0 || b.Held() != int(jobs) {
		t.Fatalf("%d held, %d steps", b.Held(), steps)
	}
}

// processor returns what this process has used of its processors, the collector's part too.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkFan is what 1 → 10,000 costs the core's goroutine in this book, by each job that is held and released.
func BenchmarkFan(b *testing.B) {
	const n = 10_000
	now := turn.Clock{Wall: time.Unix(1, 0)}
	for b.Loop() {
		book, fx := NewBook("a", &now), &turn.Effects{}
		for i := range uint64(n) {
			book.Hold(specOf(i+2), []Dep{{Num: 1}}, "", pending, fx)
		}
		book.Saw(1, "succeeded", fx)
		for book.Held() > 0 {
			book.Release(1000, fx)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/job")
}
