package tes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// documentOf returns the task of what is kept.
func documentOf(t *testing.T, text json.RawMessage) []byte {
	t.Helper()
	var doc struct{ Task json.RawMessage }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Task
}

func mustSpec(t *testing.T, body string) (*plan, jobspec.Spec) {
	t.Helper()
	p, spec, err := specOf(body, "alice")
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p, spec
}

// TestManyContents: those that would make the job's text too long are put into the store. Such a task was refused, and
// with an input of this site's files as well it was accepted, and failed later.
func TestManyContents(t *testing.T) {
	body := `{"executors":[{"image":"a","command":["b"]}],"inputs":[`
	for i := range 255 {
		body += fmt.Sprintf(`{"path":"/%d","content":"%s"},`, i, strings.Repeat(`\n`, maxInline))
	}
	task, err := parse([]byte(strings.TrimSuffix(body, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := translate(task, "alice", roots)
	if err != nil {
		t.Fatal(err)
	}
	s := &storeOf{}
	inputs, err := (&bringer{put: s.put, left: 1 << 30}).store(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.spec(inputs); err != nil || len(s.puts) != 255-maxInlineSum/maxInline {
		t.Errorf("%d are in the store, %v", len(s.puts), err)
	}
	foreseen, err := p.foreseen()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.spec(foreseen); err != nil {
		t.Error(err)
	}
}

// TestPlainTaskIsItsCommand: an executor that needs nothing else is the job's own command, and no shell stands before
// it.
func TestPlainTaskIsItsCommand(t *testing.T) {
	p, s := mustSpec(t, `{"name":"n\u0007`+strings.Repeat("x", 300)+`","id":"mine","state":"COMPLETE","creation_time":"x","logs":[],
		"future_field":{},"description":null,
		"executors":[{"image":"alpine:3","command":["printf","%s","$HOME"],"env":{"A":"b"}}],"tags":{"WORKFLOW_ID":"w","a b":"c"},
		"resources":{"cpu_cores":4,"ram_gb":1.5,"disk_gb":2,"preemptible":true,"zones":["site-2","site-1"],
		"backend_parameters":{"TimeOut":"90s","priority":"7","gpu":"1","vm":"x"}}}`)
	if !slices.Equal(s.Command, []string{"printf", "%s", "$HOME"}) || s.Env["A"] != "b" || s.Image != "alpine:3" {
		t.Errorf("%+v", s)
	}
	if s.Resources != (jobspec.SpecResources{CPU: 4, Memory: 1536, GPU: 1}) || s.Timeout != 90*time.Second ||
		s.Priority != 7 {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.Sites.Only, []string{"site-1", "site-2"}) || s.HasFiles() || len(s.Name) != jobspec.MaxLabelText {
		t.Errorf("%+v", s)
	}
	if len(s.Labels) != 1 || s.Labels["WORKFLOW_ID"] != "w" {
		t.Errorf("labels %v", s.Labels)
	}
	a, err := p.attached()
	if err != nil || a.Tags["a b"] != "c" || len(a.Name) != 302 {
		t.Errorf("%v %+v", err, a)
	}
	doc := string(a.Document)
	if strings.Contains(doc, "mine") || strings.Contains(doc, `"vm":"x"`) || !strings.Contains(doc, `"TimeOut":"90s"`) {
		t.Errorf("what is not known, and what the server says, is not kept: %s", doc)
	}
	for _, word := range []string{"preemptible", "disk_gb", `\"vm\"`} {
		if !strings.Contains(doc[strings.Index(doc, `"told"`):], word) {
			t.Errorf("%s is not told: %s", word, doc)
		}
	}
}

// TestPlan: several executors, and whatever else a command alone is not, become steps of one container.
func TestPlan(t *testing.T) {
	p, s := mustSpec(t, `{"executors":[
		{"image":"a","command":["x"],"workdir":"/w","stdin":"/in","stdout":"/o/out","stderr":"/e/err","env":{"A":"b"},"ignore_error":true},
		{"image":"a","command":["y","z"]}],
		"volumes":["/vol/A/"],"resources":{"disk_gb":0.5},
		"inputs":[{"path":"/in","url":"","content":"text","name":"n"},{"path":"/e","content":"c","url":"gs://ignored"}],
		"outputs":[{"path":"/o/out","url":"file:///scratch/out"},{"path":"/d","url":"/scratch/d/","type":"DIRECTORY"},
			{"path":"/g/[!a]*","path_prefix":"/g/","url":"file://localhost/scratch"}]}`)
	if !slices.Equal(s.Command, jobspec.StepsCommand()) || s.Outputs.MaxBytes != 1<<29 ||
		!slices.Equal(s.Outputs.Paths, []string{jobspec.StepsRecordAt}) || len(s.Inputs) != 3 {
		t.Errorf("%+v", s)
	}
	var plan jobspec.Plan
	if err := json.Unmarshal(s.Inputs[2].Content, &plan); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plan.Folders, []string{"/e", "/g", "/o", "/vol/A", "/w"}) || len(plan.Steps) != 2 {
		t.Errorf("%+v", plan)
	}
	if one := plan.Steps[0]; one.Workdir != "/w" || one.Stdin != "/in" || one.Stdout != "/o/out" || one.Stderr != "/e/err" ||
		one.Env["A"] != "b" || !one.IgnoreError {
		t.Errorf("%+v", one)
	}
	if plan.Outputs[2] != (jobspec.StepOutput{Path: "/g/[^a]*", Prefix: "/g"}) || !plan.Outputs[1].Tree {
		t.Errorf("%+v", plan.Outputs)
	}
	for i, want := range []string{"/scratch out false", "/scratch d true", "/scratch . true"} {
		x := p.exports[i]
		if got := x.Root + " " + x.To + map[bool]string{true: " true", false: " false"}[x.Many]; got != want || x.Tag != i {
			t.Errorf("%+v, want %s", x, want)
		}
	}
	if p.exports[2].Match != "[^a]*" || !p.exports[1].Tree {
		t.Errorf("%+v", p.exports)
	}
	if a, err := p.attached(); err != nil || a.Record != jobspec.StepsRecordAt {
		t.Errorf("%v %+v", err, a)
	}
}

// TestDefaults: a missing type is FILE, nulls are as if they were not there.
func TestDefaults(t *testing.T) {
	p, s := mustSpec(t, `{"name":null,"resources":null,"tags":null,"volumes":null,"executors":[{"image":"a","command":["b"],"env":null,"workdir":null}],
		"inputs":[{"path":"/a","content":"x","type":null,"url":null}]}`)
	if s.Resources.CPU != 1 || s.Resources.Memory != 0 || p.task.Inputs[0].Type != typeFile ||
		string(s.Inputs[0].Content) != "x" {
		t.Errorf("%+v", s)
	}
}
