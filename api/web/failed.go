package web

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// failedTask is a task that failed or was lost.
type failedTask struct {
	taskRow
	job    command.JobID
	Said   []string // last lines of its stderr
	Unsaid string   // why they cannot be shown, "" = they are, or are not asked for
}

const (
	// shownFailed is how many failed tasks a job's page begins with, each of the
	// first saidTasks with the last saidLines lines of its stderr.
	shownFailed = 10
	saidTasks   = 3
	saidLines   = 5
	// saidWidth bounds such a line, in characters.
	saidWidth = 200
	// saidPatience is how long a page waits for them.
	saidPatience = 2 * time.Second
)

// Errors leads to what the task wrote to stderr.
func (t *failedTask) Errors() string {
	return logURL("/jobs/"+t.job.String(), t.Index, 0, "stderr") + "#log"
}

// BadURL leads to all tasks that failed or were lost.
func (v *jobView) BadURL() string {
	return tasksURL(v.ID, 0, fsm.TaskFailed.String(), fsm.TaskLost.String())
}

// badStates selects the tasks that a job's page begins with.
var badStates = fsm.TaskStates(0).With(fsm.TaskFailed).With(fsm.TaskLost)

// failed returns the first tasks of a job that failed or were lost.
func (p *Pages) failed(ctx context.Context, job *node.Job) ([]failedTask, error) {
	if job.Counts[fsm.TaskFailed.String()]+job.Counts[fsm.TaskLost.String()] == 0 {
		return nil, nil
	}
	tasks, _, err := p.findTasks(ctx, job.ID, node.TaskQuery{States: badStates}, shownFailed)
	if err != nil {
		return nil, err
	}
	out := make([]failedTask, 0, len(tasks))
	for _, t := range tasks {
		out = append(out, failedTask{taskRow: taskOf(job, t, p.cfg.Now()), job: job.ID})
	}
	p.addSaid(ctx, job.ID, out[:min(len(out), saidTasks)])
	return out, nil
}

// addSaid adds what some tasks wrote last. Those that were lost are not asked for:
// their site is away.
func (p *Pages) addSaid(ctx context.Context, id command.JobID, tasks []failedTask) {
	ctx, cancel := context.WithTimeout(ctx, saidPatience)
	defer cancel()
	var asked sync.WaitGroup
	for i := range tasks {
		t := &tasks[i]
		if t.Attempt == 0 && !t.Unrecorded || t.State != fsm.TaskFailed.String() {
			continue
		}
		asked.Go(func() { t.Said, t.Unsaid = p.lastLines(ctx, id, t.Index, t.Attempt) })
	}
	asked.Wait()
}

// lastLines returns the end of an attempt's stderr, or why it cannot be had. What
// ended writes no more: it is asked for once.
func (p *Pages) lastLines(ctx context.Context, id command.JobID, task, attempt uint32) (said []string, unsaid string) {
	key := saidKey{id, task, attempt}
	if known, ok := p.said.get(key, p.cfg.Now()); ok {
		return known.lines, known.unsaid
	}
	q := node.LogQuery{Job: id, Task: task, Attempt: attempt, Stream: "stderr"}
	text, err := p.cfg.Source.LastLines(ctx, q, saidLines)
	if err != nil {
		what := p.cfg.Problem(err)
		unsaid = short(saidWidth, what.Title+": "+what.Detail)
	} else {
		said = saidOf(string(text))
	}
	if ctx.Err() == nil { // else the reader has gone, or the site is slow
		p.said.put(key, saidText{said, unsaid, p.cfg.Now()})
	}
	return said, unsaid
}

// saidOf returns the last lines of a text, each cut to what fits a line.
func saidOf(text string) (out []string) {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for _, line := range lines[max(0, len(lines)-saidLines):] {
		out = append(out, short(saidWidth, strings.TrimRight(line, "\r")))
	}
	if len(out) == 1 && out[0] == "" {
		return nil
	}
	return out
}
