package webtest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// FindTasks implements web.Source: half of a running job's tasks have ended.
func (b *Broker) FindTasks(
	_ context.Context, id command.JobID, q node.TaskQuery,
) (out []node.Task, next uint32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, err := b.find(id)
	if err != nil {
		return nil, 0, err
	}
	for n := q.From; n < b.jobs[i].Spec.Count; n++ {
		if len(out) == q.Limit {
			return out, n, nil
		}
		t := b.taskAt(&b.jobs[i], n)
		if state, _ := fsm.ParseTaskState(t.State); q.States.Has(state) {
			out = append(out, t)
		}
	}
	return out, 0, nil
}

// LastLines implements web.Source.
func (b *Broker) LastLines(ctx context.Context, q node.LogQuery, _ int) ([]byte, error) {
	b.Asked.Add(1)
	body, err := b.Logs(ctx, q)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func (b *Broker) taskAt(j *node.Job, n uint32) node.Task {
	t := node.Task{Index: n, State: stateOf(j, n), Reason: j.Reason}
	if j.StartedAt.IsZero() || t.State == "queued" {
		return t
	}
	t.Site, t.Machine, t.Attempt, t.Token = site(int(n)%len(b.SiteList)), "local", 1, 900
	if n%7 == 3 {
		t.Attempt = 2
	}
	t.StartedAt, t.EndedAt = j.StartedAt.Add(time.Duration(n)*time.Second), j.EndedAt
	if j.State == "running" && t.State == "succeeded" {
		t.EndedAt = t.StartedAt.Add(30 * time.Second)
	}
	code := 0
	switch t.State {
	case "failed":
		code, t.Reason = 3, "exit code 3"
		fallthrough
	case "succeeded":
		t.ExitCode = &code
		t.Run = 30 * time.Second
		t.Measured = command.Measured{
			PeakBytes: int64(n%200+40) << 20, UserMs: 20_000, SystemMs: 1000, InBytes: 1536, OutBytes: 3 << 20,
			Source: command.MeasuredCgroup,
		}
	}
	return t
}

// stateOf has the tasks of a job come by state, those that failed after those
// that did not.
func stateOf(j *node.Job, n uint32) string {
	for _, state := range []string{"succeeded", "running", "failed", "lost", "cancelled", "queued"} {
		if n < j.Counts[state] {
			return state
		}
		n -= j.Counts[state]
	}
	return j.State
}

// Logs implements web.Source.
func (b *Broker) Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	if _, err := b.Job(ctx, q.Job); err != nil {
		return nil, err
	}
	if b.Log != nil {
		return b.Log(ctx, q)
	}
	return io.NopCloser(strings.NewReader(fmt.Sprintf("%s of task %d\nsecond line\n", q.Stream, q.Task))), nil
}
