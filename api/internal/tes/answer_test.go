package tes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

func number(n int) *int { return &n }

// TestStates is the table of the design.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		name, job string
		counts    map[string]uint32
		end       *node.AttachedEnd
		want      string
	}{
		{"queued", "queued", nil, nil, stateQueued},
		{"held", "queued", map[string]uint32{"held": 1}, nil, stateQueued},
		{"owner away", "withdrawn", nil, nil, stateQueued},
		{"assigned", "running", map[string]uint32{"assigned": 1}, nil, stateInitializing},
		{"running", "running", map[string]uint32{"running": 1}, nil, stateRunning},
		{"stopping", "running", map[string]uint32{"stopping": 1}, nil, stateRunning},
		{"exporting", "succeeded", nil, nil, stateRunning},
		{"cancelled just now", "cancelled", nil, nil, stateCanceled},
		{"exported", "", nil, &node.AttachedEnd{State: "succeeded"}, stateComplete},
		{"export failed", "", nil, &node.AttachedEnd{State: "succeeded", Why: "full"}, stateSystemError},
		{"exit code", "", nil, &node.AttachedEnd{State: "failed", ExitCode: number(3)}, stateExecutorError},
		{"signal", "", nil, &node.AttachedEnd{State: "failed", Signal: number(9)}, stateExecutorError},
		{"timeout", "", nil, &node.AttachedEnd{State: "failed", ExitCode: number(0), Reason: "killed: over its timeout of 1s"}, stateExecutorError},
		{"no start", "", nil, &node.AttachedEnd{State: "failed"}, stateSystemError},
		{"runner in trouble", "", nil, &node.AttachedEnd{State: "failed", ExitCode: number(125), Troubled: true}, stateSystemError},
		{"lost", "", nil, &node.AttachedEnd{State: "lost"}, stateSystemError},
		{"cancelled", "", nil, &node.AttachedEnd{State: "cancelled"}, stateCanceled},
		{"inputs did not come", "", nil, &node.AttachedEnd{State: "cancelled", Unbrought: true}, stateSystemError},
		{"forgotten", "", nil, &node.AttachedEnd{State: node.Retired}, stateSystemError},
	} {
		if got := stateOf(&node.Attached{End: c.end}, &node.Job{State: c.job, Counts: c.counts}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestInputsDidNotComeAMomentAgo: before the end is noted, the task has the state and the exit code that it keeps, and
// says why; a broker without a leader notes it late.
func TestInputsDidNotComeAMomentAgo(t *testing.T) {
	p, _ := mustSpec(t, `{"executors":[{"image":"a","command":["b"]}]}`)
	a, err := p.attached()
	if err != nil {
		t.Fatal(err)
	}
	job := node.Job{State: "cancelled", Reason: "no such file", Unbrought: true}
	got, err := taskOf("s.1", a, &job, viewFull)
	if err != nil || got.State != stateSystemError {
		t.Fatalf("%+v %v", got, err)
	}
	if l := got.Logs[0]; len(l.Logs) != 1 || l.Logs[0].ExitCode != noExitCode || !slices.Contains(l.SystemLogs, "no such file") {
		t.Errorf("%+v", l)
	}
}

// TestViews: MINIMAL has id and state, BASIC neither contents nor outputs of commands, FULL all.
func TestViews(t *testing.T) {
	p, _ := mustSpec(t, `{"name":"n","executors":[{"image":"a","command":["b"],"workdir":"/w"}],
		"inputs":[{"path":"/a","content":"secret"}],"outputs":[{"path":"/g/*","path_prefix":"/g","url":"/scratch/o"},{"path":"/f","url":"/scratch/f"}],
		"resources":{"preemptible":true}}`)
	a, err := p.attached()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	step := jobspec.StepRecord{Started: at, Ended: at.Add(time.Second), Stdout: "out", Stderr: "err"}
	record, err := json.Marshal(jobspec.StepsRecord{Steps: []jobspec.StepRecord{step}})
	if err != nil {
		t.Fatal(err)
	}
	a.End = &node.AttachedEnd{
		State: "succeeded", Reason: "all is well", Site: "site-2", Attempt: 2, Started: at, Ended: at.Add(2 * time.Second), Created: at,
		Record: record, Files: []node.Exported{{Tag: 0, Path: "d/x", Size: 7}, {Tag: 1, Size: 9}},
	}
	for v, want := range map[view]string{
		viewMinimal: `{"id":"s.1","state":"COMPLETE"}`,
		viewBasic: `{"id":"s.1","state":"COMPLETE","name":"n","inputs":[{"path":"/a","type":"FILE"}],` +
			`"outputs":[{"url":"/scratch/o","path":"/g/*","path_prefix":"/g","type":"FILE"},{"url":"/scratch/f","path":"/f","type":"FILE"}],` +
			`"resources":{"preemptible":true},"executors":[{"image":"a","command":["b"],"workdir":"/w"}],` +
			`"logs":[{"logs":[{"start_time":"2026-01-02T03:04:05Z","end_time":"2026-01-02T03:04:06Z","exit_code":0}],` +
			`"metadata":{"attempt":"2","site":"site-2"},"start_time":"2026-01-02T03:04:05Z","end_time":"2026-01-02T03:04:07Z",` +
			`"outputs":[{"url":"/scratch/o/d/x","path":"/g/d/x","size_bytes":"7"},{"url":"/scratch/f","path":"/f","size_bytes":"9"}]}],` +
			`"creation_time":"2026-01-02T03:04:05Z"}`,
	} {
		got, err := taskOf("s.1", a, &node.Job{}, v)
		text, merr := json.Marshal(got)
		if err != nil || merr != nil || string(text) != want {
			t.Errorf("%s: %v %v\n%s\n%s", v, err, merr, text, want)
		}
	}
	full, err := taskOf("s.1", a, &node.Job{}, viewFull)
	if err != nil {
		t.Fatal(err)
	}
	l := full.Logs[0]
	if *full.Inputs[0].Content != "secret" || l.Logs[0].Stdout != "out" || l.Logs[0].Stderr != "err" || len(l.SystemLogs) != 2 ||
		l.SystemLogs[1] != "all is well" {
		t.Errorf("%+v", full)
	}
}

// TestExitCodeIsThere, whatever the end: engines read it without a look.
func TestExitCodeIsThere(t *testing.T) {
	for want, end := range map[int]node.AttachedEnd{
		0: {ExitCode: number(0)}, 3: {ExitCode: number(3)}, 137: {Signal: number(9)}, noExitCode: {Record: []byte("no json")},
	} {
		l := logOf(&kept{}, &end, &node.Job{}, viewFull)
		if len(l.Logs) != 1 || l.Logs[0].ExitCode != want {
			t.Errorf("%+v: %+v", end, l)
		}
	}
	l := logOf(&kept{}, nil, &node.Job{Reason: "waits"}, viewFull)
	if l.Logs == nil || l.Outputs == nil || l.SystemLogs[0] != "waits" {
		t.Errorf("%+v", l)
	}
}

// TestUnnotedEndIsRunning: the job is kept no more, and the end of its task is not noted yet.
func TestUnnotedEndIsRunning(t *testing.T) {
	if got := stateOf(&node.Attached{}, &node.Job{}); got != stateRunning {
		t.Error(got)
	}
}

// TestOutputsToldAreBounded: of a great many those are told that have so many bytes, and how many more there are.
func TestOutputsToldAreBounded(t *testing.T) {
	doc := &kept{Task: tesTask{Outputs: []tesOutput{{URL: "/" + strings.Repeat("u", 1000), Path: "/o", Type: typeDirectory}}}}
	end := &node.AttachedEnd{State: "succeeded", Untold: 7}
	const many = 10_000
	for range many {
		end.Files = append(end.Files, node.Exported{Path: "x"}, node.Exported{Tag: 1, Path: "of no output"})
	}
	l := logOf(doc, end, &node.Job{}, viewFull)
	task := tesTask{Logs: []tesTaskLog{l}}
	if n := len(l.Outputs); n == 0 || task.outputBytes() > maxOutputBytes || len(l.SystemLogs) != 1 ||
		!strings.HasPrefix(l.SystemLogs[0], fmt.Sprint(many+7-n, " more")) {
		t.Errorf("%d outputs, %d bytes, %v", n, task.outputBytes(), l.SystemLogs)
	}
}

// TestTaskIsReturnedAsSent: FULL has all fields of the document that the client set.
func TestTaskIsReturnedAsSent(t *testing.T) {
	const sent = `"name":"n","description":"d","inputs":[{"name":"i","description":"j","url":"/scratch/a","path":"/a",` +
		`"type":"DIRECTORY","streamable":true},{"path":"/b","type":"FILE","content":"text"}],"outputs":[{"name":"o",` +
		`"description":"p","url":"file:///scratch/x","path":"/x/*.txt","path_prefix":"/x","type":"FILE"}],"resources":{` +
		`"cpu_cores":2,"preemptible":true,"ram_gb":1.5,"disk_gb":2,"zones":["site-1"],"backend_parameters":{"GPU":"1"},` +
		`"backend_parameters_strict":true},"executors":[{"image":"a","command":["b","c"],"workdir":"/w","stdin":"/a/i",` +
		`"stdout":"/x/o.txt","stderr":"/x/e.txt","env":{"A":"b"},"ignore_error":true}],"volumes":["/v"],"tags":{"k y":""}`
	p, _ := mustSpec(t, "{"+sent+"}")
	a, err := p.attached()
	if err != nil {
		t.Fatal(err)
	}
	task, err := taskOf("s.1", a, &node.Job{State: "queued"}, viewFull)
	text, merr := json.Marshal(task)
	want := `{"id":"s.1","state":"QUEUED",` + sent + `,"logs":`
	if err != nil || merr != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%v %v\n%s\n%s", err, merr, text, want)
	}
}
