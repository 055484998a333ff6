package executortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// filed are the cases of files that travel with tasks, for handlers that are a Collector.
var filed = []testCase{
	{"FilesAreThere", testFiles},
	{"ManyFilesAreThere", testManyFiles},
	{"FilesAreCopies", testCopies},
	{"FilesAreRefused", testBadFiles},
	{"StopWhileFilesAreCopied", testStopCopying},
	{"Outputs", testOutputs},
	{"OutputsMissing", testMissing},
	{"OutputsWhen", testWhen},
	{"OutputsBounded", testOutputBounds},
	{"OutputsStayUntilForget", testOutputsStay},
	{"OutputsOfSeveral", testOutputsOfSeveral},
	{"HostileOutputs", testHostileOutputs},
	{"HostileEarlierAttempt", testHostileEarlier},
	{"Usage", testUsage},
}

// box is a sink that keeps everything.
type box struct {
	paths   []string
	content map[string]string
	exec    map[string]bool
	skipped map[string]string
	most    int64 // of a file's bytes that are kept; the rest is read
}

func newBox() *box {
	return &box{content: map[string]string{}, exec: map[string]bool{}, skipped: map[string]string{}, most: 1 << 20}
}

// File implements executor.OutputSink.
func (b *box) File(f executor.OutputFile, r io.Reader) error {
	var kept bytes.Buffer
	_, err := io.CopyN(&kept, r, min(b.most, f.Size))
	rest, cerr := io.Copy(io.Discard, r)
	if err = errors.Join(err, cerr); err != nil {
		return err
	}
	if n := int64(kept.Len()) + rest; n != f.Size {
		return fmt.Errorf("%s: %d bytes of %d", f.Path, n, f.Size)
	}
	b.paths = append(b.paths, f.Path)
	b.content[f.Path], b.exec[f.Path] = kept.String(), f.Executable
	return nil
}

// Skipped implements executor.OutputSink.
func (b *box) Skipped(name, why string) { b.skipped[name] = why }

// collect collects what an attempt has left.
func (r *Rig) collect(t executor.Task) (*box, error) {
	r.Helper()
	b := newBox()
	return b, r.Handler.(executor.Collector).Collect(r.Context(), t.ID, t.Outputs, b)
}

// collected runs a task to its clean end, and collects.
func (r *Rig) collected(t executor.Task) *box {
	r.Helper()
	r.clean(t)
	b, err := r.collect(t)
	r.Must(err)
	return b
}

// left runs a script to its clean end, and collects what it is to leave.
func (r *Rig) left(script string, want executor.Outputs) (*box, error) {
	r.Helper()
	t := r.shell(script)
	t.Outputs = want
	r.clean(t)
	return r.collect(t)
}

// clean runs a task to a clean end.
func (r *Rig) clean(t executor.Task) {
	r.Helper()
	if res := r.run(t); res.Cause != executor.Exited || res.ExitCode != 0 {
		r.Fatalf("got %+v, want a clean exit; it wrote %q and %q", res, r.Written(t.ID, "stdout"), r.Written(t.ID, "stderr"))
	}
}

// wants says which files the task is to leave.
func wants(t executor.Task, globs ...string) executor.Task {
	t.Outputs = executor.Outputs{Paths: globs}
	return t
}

// blob makes a file as a broker's store has it.
func (r *Rig) blob(content string) string {
	r.Helper()
	path := filepath.Join(r.TempDir(), "blob")
	r.Must(os.WriteFile(path, []byte(content), 0o400))
	return path
}

// testFiles: what the broker has ready is in the work folder, byte by byte, and can be run
// if it is a program.
func testFiles(r *Rig) {
	any256 := make([]byte, 256)
	for i := range any256 {
		any256[i] = byte(i)
	}
	t := wants(r.shell("./bin/run.sh && cp in.bin out.bin && cat a/b/c/deep 'odd name ü' && [ ! -x in.bin ] && [ ! -s empty ] && echo more >>in.bin"),
		"out.bin", "bin/run.sh")
	t.Files = []executor.File{
		{Path: "in.bin", Source: r.blob(strings.Repeat(string(any256), 1000))},
		{Path: "a/b/c/deep", Content: []byte("deep\n")},
		{Path: "a/b/other", Content: []byte("x")},
		{Path: "odd name ü", Source: r.blob("odd\n")},
		{Path: "bin/run.sh", Source: r.blob("#!/bin/sh\necho ran\n"), Executable: true},
		{Path: "empty", Content: nil},
	}
	b := r.collected(t)
	if got := r.Written(t.ID, "stdout"); got != "ran\ndeep\nodd\n" {
		r.Errorf("it wrote %q", got)
	}
	if b.content["out.bin"] != strings.Repeat(string(any256), 1000) {
		r.Errorf("out.bin has %d bytes that are not those of its input", len(b.content["out.bin"]))
	}
	if !b.exec["bin/run.sh"] || b.exec["out.bin"] || len(b.paths) != 2 {
		r.Errorf("collected %v, executable %v", b.paths, b.exec)
	}
}

func testManyFiles(r *Rig) {
	n := 1000
	t := wants(r.shell("find in -type f | wc -l; mv in out"), "out/")
	for i := range n {
		t.Files = append(t.Files, executor.File{Path: fmt.Sprintf("in/%d/%d.txt", i%7, i), Content: fmt.Appendf(nil, "file %d", i)})
	}
	b := r.collected(t)
	if got := strings.TrimSpace(r.Written(t.ID, "stdout")); got != fmt.Sprint(n) {
		r.Errorf("the task saw %s files, want %d", got, n)
	}
	if len(b.paths) != n || !slices.IsSorted(b.paths) {
		r.Errorf("collected %d files, sorted %v", len(b.paths), slices.IsSorted(b.paths))
	}
	for i := range n {
		if got := b.content[fmt.Sprintf("out/%d/%d.txt", i%7, i)]; got != fmt.Sprintf("file %d", i) {
			r.Fatalf("file %d is %q", i, got)
		}
	}
}

// testCopies: what a task does to its files is done to none that others get.
func testCopies(r *Rig) {
	source := r.blob("pure")
	t := r.shell("chmod 777 in; echo poison >in; ln in link; echo more >>link; cat in")
	t.Files = []executor.File{{Path: "in", Source: source}}
	r.clean(t)
	if got := r.Written(t.ID, "stdout"); got != "poison\nmore\n" {
		r.Errorf("the task's own file is %q", got)
	}
	b, err := os.ReadFile(source)
	r.Must(err)
	st, err := os.Lstat(source)
	r.Must(err)
	if string(b) != "pure" || st.Mode() != 0o400 {
		r.Errorf("the broker's file is %q, %s", b, st.Mode())
	}
}

// testBadFiles: paths that lead out of the folder, and files that are not there, start nothing.
func testBadFiles(r *Rig) {
	for _, path := range []string{"../x", "a/../../x", "", ".", "a//b", "a/", "x\x00y", "x\ny", strings.Repeat("n", 300)} {
		t := r.task("/bin/true")
		t.Files = []executor.File{{Path: path, Content: []byte("x")}}
		if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrUnfit) {
			r.Errorf("file %q: got %v, want ErrUnfit", path, err)
		}
		t.Files, t.Outputs.Paths = nil, []string{path}
		if err := r.Start(r.Context(), t); path != "a/" && !errors.Is(err, executor.ErrUnfit) {
			r.Errorf("output %q: got %v, want ErrUnfit", path, err)
		}
	}
	t := r.task("/bin/true")
	t.Files = []executor.File{{Path: "a", Content: []byte("x")}, {Path: "a/b", Content: []byte("x")}}
	if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrUnfit) {
		r.Errorf("a file that is a folder, too: got %v, want ErrUnfit", err)
	}
	t = r.task("/bin/true")
	t.Files = []executor.File{{Path: "a", Content: []byte("x")}, {Path: "b", Source: filepath.Join(r.TempDir(), "missing")}}
	r.handedBack(t, "a file that the broker has not")
	next := r.shell("ls -A")
	r.clean(next) // on the same slot, or container
	if got := r.Written(next.ID, "stdout"); got != "" {
		r.Errorf("the next task finds %q", got)
	}
}

// testNoFiles: a handler that is no Collector refuses what has files or is to leave some.
func testNoFiles(r *Rig) {
	files, outputs := r.task("/bin/true"), wants(r.task("/bin/true"), "file")
	files.Files = []executor.File{{Path: "in", Content: []byte("x")}}
	for _, t := range []executor.Task{files, outputs} {
		if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrUnfit) {
			r.Errorf("got %v, want ErrUnfit", err)
		}
	}
}

// handedBack starts a task that cannot get its files: its site's trouble.
func (r *Rig) handedBack(t executor.Task, what string) {
	r.Helper()
	err := r.Start(r.Context(), t)
	if err == nil {
		if res := r.AwaitEnd(t.ID); res.Cause != executor.Declined {
			r.Errorf("%s: got %+v, want it declined", what, res)
		}
		return
	}
	if !errors.Is(err, executor.ErrBusy) {
		r.Errorf("%s: got %v, want ErrBusy", what, err)
	}
}

// testStopCopying: a stop does not wait for files, and nothing runs then.
func testStopCopying(r *Rig) {
	source := filepath.Join(r.TempDir(), "huge")
	f, err := os.Create(source)
	r.Must(err)
	r.Must(errors.Join(f.Truncate(64<<30), f.Close())) // sparse
	t := r.shell("echo ran")
	t.Files = []executor.File{{Path: "huge", Source: source}}
	started := make(chan error, 1)
	ctx, cancel := context.WithTimeout(r.Context(), r.env.Patience)
	defer cancel()
	go func() { started <- r.Start(ctx, t) }()
	var serr error
	told := false
	r.poll("the start ends", func() bool {
		r.Must(r.Stop(r.Context(), t.ID, "test"))
		select {
		case serr = <-started:
			told = true
		default:
		}
		return told
	})
	if serr == nil {
		r.Must(r.Stop(r.Context(), t.ID, "test"))
		if res := r.AwaitEnd(t.ID); !res.Started.IsZero() {
			r.Errorf("got %+v, want that it did not run", res)
		}
	}
}

// poll asks until it is so.
func (r *Rig) poll(what string, so func() bool) {
	r.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(r.env.Patience)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			r.Fatalf("not after %s: %s", r.env.Patience, what)
		}
	}
}
