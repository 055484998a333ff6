package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/executor/plan"
)

// Main runs the plan of the work folder, and returns the exit code of the last step that counts, or Trouble.
func Main() int {
	r := &runner{work: os.Getenv("CLOUDSHARE_WORKDIR"), out: os.Stdout, err: os.Stderr}
	code := r.run(context.Background())
	if r.record.Trouble != "" {
		fmt.Fprintf(os.Stderr, "steps: %s\n", r.record.Trouble)
	}
	return code
}

// runner runs one plan.
type runner struct {
	work     string
	out, err *os.File
	record   plan.Record
}

// run runs the plan, collects what it leaves, and writes the record.
func (r *runner) run(ctx context.Context) int {
	p, err := r.readPlan()
	if err != nil {
		return r.fail(err)
	}
	code := 0
	if err = makeFolders(p.Folders); err == nil {
		code, err = r.runAll(ctx, p.Steps)
	}
	// What failed tasks leave is wanted, too; what is missing of it says nothing.
	if lost := r.collect(p.Outputs); err == nil && code == 0 {
		err = lost
	}
	if err != nil {
		return r.fail(err)
	}
	if err = r.write(); err != nil {
		return r.fail(err)
	}
	return code
}

// fail notes what else than a step has failed.
func (r *runner) fail(err error) int {
	r.record.Trouble = strings.Join(strings.Fields(err.Error()), " ")
	_ = r.write() // the line on stderr says it, too
	return plan.Trouble
}

func (r *runner) readPlan() (p plan.Plan, err error) {
	text, err := os.ReadFile(filepath.Join(r.work, plan.Path))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return plan.Plan{}, fmt.Errorf("read what to run: %w", err)
	}
	return p, nil
}

func (r *runner) write() error {
	text, err := json.Marshal(r.record)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.work, plan.RecordPath), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the record of steps: %w", err)
	}
	return nil
}

// makeFolders makes what the task is to find, which the image's user must be allowed to.
func makeFolders(list []string) error {
	for _, path := range list {
		if err := os.MkdirAll(path, 0o777); err != nil {
			return fmt.Errorf("make folder %s: %w (the image's user may not: use an image of root, or one that has the folder)",
				path, err)
		}
	}
	return nil
}

// runAll runs steps until one fails that counts.
func (r *runner) runAll(ctx context.Context, list []plan.Step) (code int, err error) {
	for i := range list {
		if code, err = r.runOne(ctx, &list[i]); err != nil {
			return code, fmt.Errorf("step %d: %w", i+1, err)
		}
		if code != 0 && !list[i].IgnoreError {
			return code, nil
		}
	}
	return 0, nil
}

// notFound and notExecutable are the exit codes by which shells say so.
const (
	notFound      = 127
	notExecutable = 126
)

// runOne runs a step. The error is of what it was to be given; a command that cannot be begun has failed.
func (r *runner) runOne(ctx context.Context, s *plan.Step) (code int, err error) {
	files := opened{}
	defer files.close()
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Workdir, environ(s.Env)
	if s.Stdin != "" {
		if cmd.Stdin, err = files.open(s.Stdin, os.O_RDONLY); err != nil {
			return 0, err
		}
	}
	out, err := files.orElse(s.Stdout, r.out)
	if err != nil {
		return 0, err
	}
	bad, err := files.orElse(s.Stderr, r.err)
	if err != nil {
		return 0, err
	}
	from, badFrom := sizeOf(out), sizeOf(bad)
	cmd.Stdout, cmd.Stderr = out, bad
	if cmd.Err == nil && !strings.Contains(s.Command[0], "/") {
		cmd.Path = lookPath(s.Command[0], cmd.Env, cmd.Path)
	}
	step := plan.StepRecord{Started: time.Now().UTC()}
	err = cmd.Run()
	step.Ended, step.ExitCode = time.Now().UTC(), codeOf(err)
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		fmt.Fprintf(bad, "steps: %v\n", err)
	}
	step.Stdout, step.Stderr = tailOf(out, from), tailOf(bad, badFrom)
	r.record.Steps = append(r.record.Steps, step)
	return step.ExitCode, nil
}

// codeOf returns the exit code that shells would give.
func codeOf(err error) int {
	var exited *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exited):
		if status, ok := exited.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return exited.ExitCode()
	case errors.Is(err, fs.ErrPermission):
		return notExecutable
	}
	return notFound
}

// environ returns this process's environment, and what a step adds.
func environ(more map[string]string) []string {
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, name+"="+more[name])
	}
	return env
}

// lookPath finds a command by the PATH of a step, if it has one of its own.
func lookPath(name string, env []string, found string) string {
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		st, err := os.Stat(file)
		if err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && filepath.IsAbs(file) {
			return file
		}
	}
	return found
}

// opened are the files of one step.
type opened []*os.File

func (o *opened) open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o666)
	if err == nil {
		*o = append(*o, f)
	}
	return f, err
}

// orElse opens a file to be written, or returns the attempt's own output.
func (o *opened) orElse(path string, own *os.File) (*os.File, error) {
	if path == "" {
		return own, nil
	}
	return o.open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND)
}

func (o *opened) close() {
	for _, f := range *o {
		_ = f.Close() // a step has written it
	}
}

// sizeOf returns where a stream is, -1 if it cannot be read again.
func sizeOf(f *os.File) int64 {
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return -1
	}
	return st.Size()
}

// tailOf returns the end of what was written from a place on.
func tailOf(f *os.File, from int64) string {
	size := sizeOf(f)
	if from < 0 || size <= from {
		return ""
	}
	text := make([]byte, min(size-from, plan.MaxTail))
	n, err := f.ReadAt(text, size-int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return strings.ToValidUTF8(string(text[:n]), "�")
}
