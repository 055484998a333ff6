package tes

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// view is how much of a task is told.
type view string

// The views.
const (
	viewMinimal view = "MINIMAL"
	viewBasic   view = "BASIC"
	viewFull    view = "FULL"
)

// liveStates are the states by those of jobs whose end is not noted yet.
var liveStates = map[string]string{
	"queued": stateQueued, "withdrawn": stateQueued, "cancelled": stateCanceled, "running": stateRunning,
	// Ended, but for its files and the record of its end; its job may be kept no more.
	"": stateRunning, "succeeded": stateRunning, "failed": stateRunning, "lost": stateRunning,
}

// stateOf returns a task's state. The job is of use only while a has no end.
func stateOf(a *node.Attached, job *node.Job) string {
	if a.End != nil {
		return endState(a.End)
	}
	if job.Counts["assigned"] > 0 {
		return stateInitializing
	}
	if job.Unbrought {
		return stateSystemError
	}
	if s := liveStates[job.State]; s != "" {
		return s
	}
	return stateUnknown
}

// endState returns the state of a task that has ended.
func endState(e *node.AttachedEnd) string {
	switch e.State {
	case "succeeded":
		if e.Why == "" {
			return stateComplete
		}
	case "failed":
		if !e.Troubled && (e.Signal != nil || e.ExitCode != nil && *e.ExitCode != 0) {
			return stateExecutorError
		}
		if timedOut(e) {
			return stateExecutorError
		}
	case "cancelled":
		if !e.Unbrought {
			return stateCanceled
		}
	}
	return stateSystemError
}

// timedOut reports whether a task's own timeout ended it, by the words of its reason.
func timedOut(e *node.AttachedEnd) bool { return strings.Contains(e.Reason, "timeout") }

// taskOf returns a task in the words of TES.
func taskOf(id string, a *node.Attached, job *node.Job, v view) (tesTask, error) {
	t := tesTask{ID: id, State: stateOf(a, job)}
	if v == viewMinimal {
		return t, nil
	}
	doc := kept{}
	if err := json.Unmarshal(a.Document, &doc); err != nil {
		return t, fmt.Errorf("read the task of job %s: %w", id, err)
	}
	state := t.State
	t = doc.Task
	t.ID, t.State = id, state
	if v == viewBasic {
		for i := range t.Inputs {
			t.Inputs[i].Content = nil
		}
	}
	t.CreationTime = moment(job.SubmittedAt)
	if a.End != nil && t.CreationTime == "" {
		t.CreationTime = moment(a.End.Created)
	}
	end := a.End
	if end == nil && job.Unbrought { // it is noted soon; clients read an exit code of what has ended
		end = &node.AttachedEnd{State: job.State, Reason: job.Reason, Ended: job.EndedAt, Unbrought: true}
	}
	t.Logs = []tesTaskLog{logOf(&doc, end, job, v)}
	return t, nil
}

func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// logOf returns what became of a task: until its end that is little.
func logOf(doc *kept, end *node.AttachedEnd, job *node.Job, v view) tesTaskLog {
	l := tesTaskLog{Logs: []tesExecutorLog{}, Outputs: []tesOutputLog{}}
	if v == viewFull {
		l.SystemLogs = append(l.SystemLogs, doc.Told...)
	}
	if end == nil {
		l.StartTime = moment(job.StartedAt)
		if v == viewFull && job.Reason != "" {
			l.SystemLogs = append(l.SystemLogs, job.Reason)
		}
		return l
	}
	l.StartTime, l.EndTime = moment(end.Started), moment(end.Ended)
	if end.Site != "" {
		l.Metadata = map[string]string{"site": end.Site, "attempt": strconv.FormatUint(uint64(end.Attempt), 10)}
	}
	record, _ := jobspec.ParseStepsRecord(end.Record)
	l.Logs = executorLogs(end, &record, v)
	untold := l.tellOutputs(doc, end)
	if v == viewFull {
		for _, why := range []string{end.Reason, record.Trouble, end.Why} {
			if why != "" {
				l.SystemLogs = append(l.SystemLogs, why)
			}
		}
		if untold > 0 {
			l.SystemLogs = append(l.SystemLogs, fmt.Sprintf("%d more outputs went where they go: too many to be told here", untold))
		}
	}
	return l
}

// executorLogs returns one for each executor that has begun, and at least one.
func executorLogs(end *node.AttachedEnd, record *jobspec.StepsRecord, v view) []tesExecutorLog {
	logs := make([]tesExecutorLog, 0, len(record.Steps)+1)
	for i := range record.Steps {
		s := &record.Steps[i]
		l := tesExecutorLog{StartTime: moment(s.Started), EndTime: moment(s.Ended), ExitCode: s.ExitCode}
		if v == viewFull {
			l.Stdout, l.Stderr = s.Stdout, s.Stderr
		}
		logs = append(logs, l)
	}
	if len(logs) == 0 {
		logs = append(logs, tesExecutorLog{
			StartTime: moment(end.Started), EndTime: moment(end.Ended), ExitCode: exitCode(end),
		})
	}
	return logs
}

// noExitCode stands for that of a command of which none is known.
const noExitCode = -1

// exitCode returns a task's, as shells give it for one that a signal ended.
func exitCode(end *node.AttachedEnd) int {
	switch {
	case end.Signal != nil && *end.Signal != 0:
		return 128 + *end.Signal
	case end.ExitCode != nil:
		return *end.ExitCode
	}
	return noExitCode
}

const (
	// maxOutputBytes bounds the texts of the outputs of a task that are told.
	maxOutputBytes = 4 << 20
	// outputLogBytes is what one has besides its URL and its path, as JSON.
	outputLogBytes = 64
)

// bytes returns about what an output takes in an answer.
func (o *tesOutputLog) bytes() int { return len(o.URL) + len(o.Path) + outputLogBytes }

// tellOutputs adds the files that went where they go, and returns how many more did.
func (l *tesTaskLog) tellOutputs(doc *kept, end *node.AttachedEnd) (untold int) {
	untold = end.Untold
	left := maxOutputBytes
	for _, f := range end.Files {
		if f.Tag < 0 || f.Tag >= len(doc.Task.Outputs) {
			continue
		}
		o := outputLog(&doc.Task.Outputs[f.Tag], f)
		if left -= o.bytes(); left < 0 {
			untold++
			continue
		}
		l.Outputs = append(l.Outputs, o)
	}
	return untold
}

// outputBytes returns about what the outputs of a task take in an answer.
func (t *tesTask) outputBytes() (sum int64) {
	for i := range t.Logs {
		for j := range t.Logs[i].Outputs {
			sum += int64(t.Logs[i].Outputs[j].bytes())
		}
	}
	return sum
}

// outputLog returns one file that went where it goes.
func outputLog(o *tesOutput, f node.Exported) tesOutputLog {
	l := tesOutputLog{URL: o.URL, Path: o.Path, SizeBytes: strconv.FormatInt(f.Size, 10)}
	if f.Path == "" {
		return l
	}
	l.URL = strings.TrimSuffix(o.URL, "/") + "/" + f.Path
	base := o.Path
	if strings.ContainsAny(o.Path, wildcards) {
		base = o.PathPrefix
	}
	l.Path = path.Join(base, f.Path)
	return l
}
