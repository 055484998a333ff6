package steps

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor/plan"
)

// rig is a work folder with a plan, and a place that stands for the container's root.
type rig struct {
	t          *testing.T
	work, root string
}

func newRig(t *testing.T) *rig {
	r := &rig{t, t.TempDir(), t.TempDir()}
	if err := os.MkdirAll(filepath.Join(r.work, plan.Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) at(p string) string { return filepath.Join(r.root, p) }

// run runs a plan and returns the exit code, the record, and what went to the attempt's own output.
func (r *rig) run(p plan.Plan) (int, plan.Record, string) {
	r.t.Helper()
	text, err := json.Marshal(p)
	err = errors.Join(err, os.WriteFile(filepath.Join(r.work, plan.Path), text, 0o600))
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(r.root, "own"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer out.Close()
	run := &runner{work: r.work, out: out, err: out}
	code := run.run(r.t.Context())
	text, err = os.ReadFile(filepath.Join(r.work, plan.RecordPath))
	if err != nil {
		r.t.Fatal(err)
	}
	record, err := plan.ParseRecord(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return code, record, r.read(r.at("own"))
}

func (r *rig) read(path string) string {
	r.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

// TestStepsShareTheirFiles: each step gets its own place, environment, input and output, and no shell.
func TestStepsShareTheirFiles(t *testing.T) {
	r := newRig(t)
	code, record, own := r.run(plan.Plan{
		Folders: []string{r.at("vol"), r.at("work")},
		Steps: []plan.Step{
			{Command: []string{"printf", "%s", "$HOME"}, Stdout: r.at("vol/literal")},
			{Command: sh("pwd; echo $A >&2; cat"), Workdir: r.at("work"), Env: map[string]string{"A": "env"}, Stdin: r.at("vol/literal"), Stderr: r.at("vol/err")},
		},
	})
	if code != 0 || record.Trouble != "" || len(record.Steps) != 2 {
		t.Fatalf("%d %+v", code, record)
	}
	if got := r.read(r.at("vol/literal")); got != "$HOME" {
		t.Errorf("%q", got)
	}
	if own != r.at("work")+"\n$HOME" || record.Steps[1].Stdout != own || record.Steps[1].Stderr != "env\n" {
		t.Errorf("%q %+v", own, record.Steps[1])
	}
	for _, s := range record.Steps {
		if s.Started.IsZero() || s.Ended.Before(s.Started) {
			t.Errorf("%+v", s)
		}
	}
}

// TestStepsStopAtTheFirstError, unless it is to be ignored.
func TestStepsStopAtTheFirstError(t *testing.T) {
	r := newRig(t)
	code, record, own := r.run(plan.Plan{Steps: []plan.Step{
		{Command: sh("exit 3"), IgnoreError: true},
		{Command: sh("echo two; kill -9 $$")},
		{Command: sh("echo three")},
	}})
	if code != 128+9 || len(record.Steps) != 2 || record.Steps[0].ExitCode != 3 || own != "two\n" {
		t.Errorf("%d %+v %q", code, record, own)
	}
	code, record, _ = newRig(t).run(plan.Plan{Steps: []plan.Step{{Command: []string{"no-such-program"}}}})
	if code != notFound || record.Trouble != "" {
		t.Errorf("%d %+v", code, record)
	}
	code, record, _ = newRig(t).run(plan.Plan{Steps: []plan.Step{{Command: sh("exit 5"), IgnoreError: true}}})
	if code != 0 || record.Steps[0].ExitCode != 5 {
		t.Errorf("%d %+v", code, record)
	}
}

// TestOutputsComeToTheWorkFolder: single files, folders and what patterns match, by links or not.
func TestOutputsComeToTheWorkFolder(t *testing.T) {
	r := newRig(t)
	outputs := []plan.Output{
		{Path: r.at("o/a.txt")},
		{Path: r.at("o/d"), Tree: true},
		{Path: r.at("o/*.txt"), Prefix: r.at("o")},
		{Path: r.at("o/none*"), Prefix: r.at("o")},
		{Path: r.at("o/[de]"), Prefix: r.at(""), Tree: true},
		{Path: r.at("o/link")},
	}
	code, record, _ := r.run(plan.Plan{
		Folders: []string{r.at("o")}, Outputs: outputs,
		Steps: []plan.Step{{Command: sh("echo a > a.txt; echo b > b.txt; mkdir -p d/e; echo c > d/e/c; ln -s a.txt link; ln -s ../a.txt d/l; ln -s /nowhere d/n"), Workdir: r.at("o")}},
	})
	if code != 0 {
		t.Fatalf("%d %+v", code, record)
	}
	for path, want := range map[string]string{
		"0/" + plan.Single: "a\n", "1/e/c": "c\n", "1/l": "a\n", "2/a.txt": "a\n", "2/b.txt": "b\n", "4/o/d/e/c": "c\n",
		"5/" + plan.Single: "a\n",
	} {
		if got := r.read(filepath.Join(r.work, plan.OutFolder, path)); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if _, err := os.Stat(filepath.Join(r.work, plan.OutFolder, "3")); err == nil {
		t.Error("there is something of a pattern that matches nothing")
	}
}

// TestMissingOutput: a task that succeeds and leaves not what it is to is in trouble; one that fails has failed.
func TestMissingOutput(t *testing.T) {
	r := newRig(t)
	p := plan.Plan{
		Outputs: []plan.Output{{Path: r.at("none")}, {Path: r.at("there")}},
		Steps:   []plan.Step{{Command: sh("echo x > " + r.at("there"))}},
	}
	code, record, _ := r.run(p)
	if code != plan.Trouble || !strings.Contains(record.Trouble, "left no such file") || len(record.Steps) != 1 {
		t.Errorf("%d %+v", code, record)
	}
	r = newRig(t)
	p.Steps[0].Command = sh("echo x > " + r.at("there") + "; exit 4")
	p.Outputs = []plan.Output{{Path: r.at("none")}, {Path: r.at("there")}}
	if code, record, _ = r.run(p); code != 4 || record.Trouble != "" {
		t.Errorf("%d %+v", code, record)
	}
	if got := r.read(filepath.Join(r.work, plan.OutFolder, "1", plan.Single)); got != "x\n" {
		t.Errorf("%q", got)
	}
}

// TestTrouble: what is not to be had before a step begins is no exit code of its own.
func TestTrouble(t *testing.T) {
	r := newRig(t)
	for _, p := range []plan.Plan{
		{Folders: []string{"/proc/none"}, Steps: []plan.Step{{Command: sh("true")}}},
		{Steps: []plan.Step{{Command: sh("true"), Stdin: r.at("none")}}},
		{Steps: []plan.Step{{Command: sh("true"), Stdout: r.at("none/x")}}},
	} {
		if code, record, _ := r.run(p); code != plan.Trouble || record.Trouble == "" {
			t.Errorf("%+v: %d %+v", p, code, record)
		}
	}
}
