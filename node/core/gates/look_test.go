package gates

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// aState is a state with job 7, and at first with job 5.
type aState struct {
	turn.StateReader
	gates     fsm.GatesView
	counts    map[uint64]fsm.Counts
	ended     []fsm.EndedRun
	looks     int
	forgotten bool
}

func (s *aState) Version() uint32              { return command.GatesVersion }
func (s *aState) Time() int64                  { return 1 }
func (s *aState) ReturnedChange(string) uint64 { return 0 }
func (s *aState) Retired(command.JobID) bool   { return s.forgotten }

func (s *aState) TaskCounts(id command.JobID) (fsm.Counts, bool) {
	c, known := s.counts[id.Num]
	return c, known && (id.Num == 7 || !s.forgotten)
}

func (s *aState) EndedRuns(command.JobID) iter.Seq[fsm.EndedRun] { return slices.Values(s.ended) }

func (s *aState) Gates(command.JobID, uint32, int) (fsm.GatesView, bool) {
	s.looks++
	return s.gates, true
}

// bookOf returns a book with job 7, whose spec has these fields.
func bookOf(t *testing.T, count uint32, fields string) *Book {
	t.Helper()
	spec, err := jobspec.ParseSpec([]byte(`{"command":["x"],` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	out := turn.NewOutbox("a")
	b := NewBook(Site{
		Name: "a", Now: &turn.Clock{}, Out: &out,
		Read:    func(*command.JobSpec) (jobspec.Spec, error) { return spec, nil },
		Pending: func(uint64) bool { return false },
		Own:     func(uint64) (c fsm.Counts, _ func() Elements, ok bool) { return c, nil, false },
	})
	b.Add(&command.JobSpec{Num: 7, Count: count, Gated: true})
	return &b
}

// TestLooksAreApart: a job that holds 20,000 tasks one by one is looked at five times a second, however often something
// happens to it; a hold by hand has it looked at at once.
func TestLooksAreApart(t *testing.T) {
	b := bookOf(t, 30_000, `"count":30000,"retry":{"max_attempts":3,"backoff":"1h","backoff_max":"1h"}`)
	s := &aState{counts: map[uint64]fsm.Counts{7: {fsm.Held: 20_000, fsm.Running: 10_000}}}
	for i := range uint32(20_000) {
		s.gates.Returned = append(s.gates.Returned, fsm.HeldTask{
			Job: job, Task: i, Attempt: 1, Failures: 1, End: fsm.EndFailed, SinceMs: 1,
		})
	}
	fx := &turn.Effects{}
	for i := range uint32(100) {
		s.counts[7] = fsm.Counts{fsm.Held: 20_000, fsm.Running: 10_000 - i, fsm.TaskSucceeded: i}
		b.Settle(s, fx)
		b.Now.Boot += int64(10 * time.Millisecond)
	}
	if s.looks < 4 || s.looks > 6 {
		t.Errorf("%d looks in a second", s.looks)
	}
	b.Settle(s, fx)
	before := s.looks
	b.SetHold(&command.JobSpec{Num: 7}, true, fx)
	if b.Settle(s, fx); s.looks != before+1 {
		t.Errorf("%d looks after a hold by hand", s.looks-before)
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestForgottenJobsCountAsSeen: of a job that is forgotten before its end was seen, what was seen counts: only those
// tasks are cancelled that wait for one that was pending, also after a restart.
func TestForgottenJobsCountAsSeen(t *testing.T) {
	b := bookOf(t, 3, `"count":3,"after":[{"job":"a.5","when":"each"}]`)
	s := &aState{
		gates:  fsm.GatesView{Held: []fsm.TaskRun{{From: 0, To: 3}}},
		counts: map[uint64]fsm.Counts{7: {fsm.Held: 3}, 5: {fsm.TaskSucceeded: 1, fsm.TaskFailed: 1, fsm.Running: 1}},
		ended:  []fsm.EndedRun{{From: 0, To: 1, State: fsm.TaskSucceeded}, {From: 2, To: 3, State: fsm.TaskFailed}},
	}
	fx := &turn.Effects{}
	b.refresh(b.targets[5], s, fx)
	s.forgotten = true
	want := "0-1 0 \"\"; 1-2 3 \"waited for job a.5 task by task, which is no longer kept, and how it ended is not known\"; " +
		"2-3 3 \"waited for the task at its place of job a.5, which did not succeed\"; "
	check := func() {
		t.Helper()
		got := ""
		for _, r := range b.look(b.jobs[7], 1, s, fx) {
			got += fmt.Sprintf("%d-%d %d %q; ", r.From, r.To, r.Do, r.Reason)
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check()
	if len(fx.Writes) != 1 {
		t.Fatalf("%d writes", len(fx.Writes))
	}
	e, err := DecodeElements(fx.Writes[0].Value)
	if err != nil || !e.Unknown {
		t.Fatalf("%+v, %v", e, err)
	}
	b = bookOf(t, 3, `"count":3,"after":[{"job":"a.5","when":"each"}]`)
	b.targets[5].Elements, b.targets[5].over = e, true
	check()
}

// TestHoldsCoverAll: what is held by hand is all of the job's tasks but those that end, each once and in order, in a
// bounded number of runs.
func TestHoldsCoverAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Uint32Range(1, 5000).Draw(t, "count")
		var queued []fsm.TaskRun
		var ends []command.GateRun
		ending := map[uint32]bool{}
		for at := uint32(0); at < count && len(queued)+len(ends) < 50; {
			to := min(count, at+rapid.Uint32Range(1, 40).Draw(t, "n"))
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				queued = append(queued, fsm.TaskRun{From: at, To: to})
			case 1:
				ends = append(ends, command.GateRun{From: at, To: to, Do: command.GateFail})
				for i := at; i < to; i++ {
					ending[i] = true
				}
			}
			at = to
		}
		runs := withHolds(ends, holdsOf(count, queued))
		at := uint32(0)
		for _, r := range runs {
			if r.From != at || r.To <= at {
				t.Fatalf("run [%d, %d) behind task %d", r.From, r.To, at)
			}
			for at = r.From; at < r.To; at++ {
				if ending[at] != (r.Do == command.GateFail) {
					t.Fatalf("task %d: action %d", at, r.Do)
				}
			}
		}
		if at != count || len(runs) > 3*spansPerJob {
			t.Fatalf("%d runs to task %d of %d", len(runs), at, count)
		}
		for _, r := range runs {
			pieces := 0
			for _, q := range queued {
				if q.From < r.To && r.From < q.To {
					pieces++
				}
			}
			if r.Do == command.GateHold && pieces > command.MaxGatePieces+1 {
				t.Fatalf("%d pieces in [%d, %d)", pieces, r.From, r.To)
			}
		}
	})
}
