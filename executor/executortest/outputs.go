package executortest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// leave is a script that leaves some files.
const leave = `mkdir -p out/sub/deeper model other && echo 1 >out/a.csv && echo 2 >out/b.csv && echo 3 >out/c.txt &&
echo 4 >out/.hidden.csv && echo 5 >out/sub/d.csv && echo w >model/weights && echo h >model/.cfg && : >model/empty &&
echo x >other/x && printf '#!/bin/sh\n' >tool && chmod 4755 tool`

// testOutputs: what globs and folders name comes back, and nothing else.
func testOutputs(r *Rig) {
	for _, c := range []struct{ globs, want string }{
		{"out/*.csv", "out/a.csv out/b.csv"},
		{"out/.*.csv", "out/.hidden.csv"},
		{"out/[ac].*", "out/a.csv out/c.txt"},
		{"*/?.csv", "out/a.csv out/b.csv"},
		{"out/*/*.csv", "out/sub/d.csv"},
		{"model/", "model/.cfg model/empty model/weights"},
		{"o*/", "other/x out/.hidden.csv out/a.csv out/b.csv out/c.txt out/sub/d.csv"},
		{"tool model/weights", "model/weights tool"},
		{"out/sub/deeper/", ""},
	} {
		t := wants(r.shell(leave), strings.Fields(c.globs)...)
		b := r.collected(t)
		if got := strings.Join(b.paths, " "); got != c.want {
			r.Errorf("%s: collected %q, want %q", c.globs, got, c.want)
		}
		if slices.Contains(b.paths, "tool") != b.exec["tool"] {
			r.Errorf("%s: executable %v", c.globs, b.exec)
		}
	}
	t := wants(r.shell(leave), "./")
	if b := r.collected(t); len(b.paths) != 10 || b.content["out/sub/d.csv"] != "5\n" || b.content["model/empty"] != "" {
		r.Errorf("all: collected %v", b.content)
	}
}

// testMissing: a glob that must match and does not is an error that names it, and no file
// is given; one that may match is none.
func testMissing(r *Rig) {
	script := leave + "; ln -s out/a.csv link"
	t := wants(r.shell(script), "out/*.csv", "absent/*.dat")
	r.clean(t)
	b, err := r.collect(t)
	missing, ok := errors.AsType[*executor.MissingOutputError](err)
	if !ok || missing.Glob != "absent/*.dat" || len(b.paths) > 0 {
		r.Errorf("got %v with %v, want absent/*.dat named and no file", err, b.paths)
	}
	t.Outputs.Paths, t.Outputs.Optional = nil, t.Outputs.Paths // as of a task that has failed
	if b, err = r.collect(t); err != nil || !slices.Equal(b.paths, []string{"out/a.csv", "out/b.csv"}) {
		r.Errorf("if nothing must match: got %v, %v", b.paths, err)
	}
	for glob, why := range map[string]string{"out": "folder", "link": "symbolic link", "absent/": ""} {
		_, err = r.left(script, executor.Outputs{Paths: []string{glob}})
		if err == nil || !strings.Contains(err.Error(), why) {
			r.Errorf("%s: got %v, want an error that says %q", glob, err, why)
		}
	}
	b, err = r.left(script, executor.Outputs{Paths: []string{"out/a.csv"}, Optional: []string{"absent/*.dat", "model/w*"}})
	r.Must(err)
	if want := []string{"model/weights", "out/a.csv"}; !slices.Equal(b.paths, want) {
		r.Errorf("with optional ones: %v, want %v", b.paths, want)
	}
}

// testWhen: a task that fails leaves files if they are wanted always.
func testWhen(r *Rig) {
	for when, want := range map[executor.When]int{executor.WhenAlways: 1, executor.WhenSuccess: 0} {
		for _, end := range []string{"exit 3", "kill -9 $$", "sleep 60"} {
			t := wants(r.shell("echo x >file; "+end), "file")
			t.Outputs.When = when
			if end == "sleep 60" {
				t.Timeout = time.Second
			}
			r.run(t)
			b, err := r.collect(t)
			if err != nil || len(b.paths) != want {
				r.Errorf("when %d, %s: got %v, %v; want %d files", when, end, b.paths, err, want)
			}
		}
	}
	t := wants(r.task("/no/such/command"), "file")
	r.run(t)
	if b, err := r.collect(t); err != nil || len(b.paths) > 0 {
		r.Errorf("of a task that did not begin: %v, %v", b.paths, err)
	}
}

// testOutputBounds: more than is allowed is an error before any file is given.
func testOutputBounds(r *Rig) {
	t := wants(r.shell("for i in 1 2 3 4 5; do head -c 1000 /dev/zero >f$i; done"), "f*")
	r.clean(t)
	for what, change := range map[string]func(*executor.Outputs){
		"bytes": func(o *executor.Outputs) { o.MaxBytes = 4999 },
		"files": func(o *executor.Outputs) { o.MaxFiles = 4 },
	} {
		over := t
		change(&over.Outputs)
		b, err := r.collect(over)
		bound, ok := errors.AsType[*executor.OutputBoundError](err)
		if !ok || bound.What != what || len(b.paths) > 0 {
			r.Errorf("over its %s: got %v with %v", what, err, b.paths)
		}
	}
	t.Outputs.MaxBytes, t.Outputs.MaxFiles = 5000, 5
	if b, err := r.collect(t); err != nil || len(b.paths) != 5 {
		r.Errorf("just within: %v, %v", b.paths, err)
	}
}

// testOutputsStay: until they are forgotten, over restarts of the broker, and also if it was
// not there at the end.
func testOutputsStay(r *Rig) {
	seen := wants(r.shell("mkdir d; echo seen >d/file; chmod 0 d"), "d/file")
	r.clean(seen)
	if _, err := r.collect(seen); err != nil {
		r.Errorf("at once: %v", err)
	}
	blind := wants(r.shell("echo early >file; sleep 2; echo blind >file"), "file")
	r.Begin(blind)
	r.AwaitRunning(blind.ID)
	if _, err := r.collect(blind); err == nil {
		r.Error("outputs of an attempt that runs were given")
	}
	states := r.reopen()
	if st := r.find(states, seen.ID); st.Ended == nil || !st.Outputs.Wanted() {
		r.Errorf("adopted %+v, want what it is to leave", st)
	}
	if st := r.find(states, blind.ID); st.Ended == nil {
		r.AwaitEnd(blind.ID)
	}
	for range 2 {
		for t, want := range map[*executor.Task]string{&seen: "seen\n", &blind: "blind\n"} {
			b, err := r.collect(*t)
			if path := t.Outputs.Paths[0]; err != nil || b.content[path] != want {
				r.Errorf("%s: %v, %v", path, b.content, err)
			}
		}
		r.reopen()
	}
	r.Must(r.Forget(r.Context(), seen.ID))
	if _, err := r.collect(seen); !errors.Is(err, executor.ErrUnknownAttempt) {
		r.Errorf("forgotten: got %v, want ErrUnknownAttempt", err)
	}
	if _, err := r.collect(r.task("x")); !errors.Is(err, executor.ErrUnknownAttempt) {
		r.Errorf("of nothing: got %v, want ErrUnknownAttempt", err)
	}
	if b, err := r.collect(blind); err != nil || b.content["file"] != "blind\n" {
		r.Errorf("the other one: %v, %v", b.content, err)
	}
}

// testOutputsOfSeveral: one after another in one place, each has its own files only.
func testOutputsOfSeveral(r *Rig) {
	var tasks []executor.Task
	for i := range r.many(20) {
		t := wants(r.shell(fmt.Sprintf("ls -A >before; echo %d >file%d; mkdir -p a/b; chmod 0 a . 2>/dev/null; :", i, i)), "file*", "before")
		r.clean(t)
		tasks = append(tasks, t)
		r.clean(r.shell("[ -z \"$(ls -A)\" ] && echo trash >trash"))
	}
	for i, t := range tasks {
		b, err := r.collect(t)
		r.Must(err)
		want := map[string]string{"before": "before\n", fmt.Sprintf("file%d", i): fmt.Sprintf("%d\n", i)}
		if !maps.Equal(b.content, want) {
			r.Errorf("task %d left %v, want %v", i, b.content, want)
		}
		r.Must(r.Forget(r.Context(), t.ID))
	}
}

// testHostileOutputs: nothing but regular files of the folder itself is ever read.
func testHostileOutputs(r *Rig) {
	for _, c := range []struct{ name, script, globs, want string }{
		{"links", `echo x >good; ln -s /etc/passwd passwd; ln -s /etc etc; ln -s ../.. up; mkdir d; ln -s /proc/self/fd d/fd`, "./", "good"},
		{"a file becomes a link", `rm in; ln -s /etc/passwd in; echo x >good`, "./", "good"},
		{"a folder becomes a link", `rm -r sub; ln -s /etc sub; echo x >good`, "good", "good"},
		{"pipes and sockets", `mkfifo pipe d.csv; echo x >good; mkdir dir; mkfifo dir/p`, "./", "good"},
		{"devices", `mknod null c 1 3 2>/dev/null; mknod zero c 1 5 2>/dev/null; echo x >good`, "./", "good"},
		{"no rights", `mkdir -p a/b; echo x >a/b/good; chmod 0 a/b/good a/b a .`, "a/", "a/b/good"},
		{"names of any bytes", `echo x >good; echo x >"$(printf 'bad\377')"; echo x >"$(printf 'two\nlines')"`, "./", "good"},
		{"deep folders", `echo x >good; for i in $(seq 300); do mkdir deep-folder && cd deep-folder; done; echo x >bad`, "./", "good"},
		{"hard links", `echo x >good; ln good other`, "./", "good other"},
		{"sparse", `echo x >good; truncate -s 64M sparse`, "./", "good sparse"},
		{"processes that write on", `trap '' TERM HUP; (while :; do echo more; done >>grows) & sleep 0.2; echo x >good`, "good grows", "good grows"},
	} {
		t := wants(r.shell(c.script+"; exit 0"), strings.Fields(c.globs)...)
		t.Files = []executor.File{{Path: "in", Content: []byte("x")}, {Path: "sub/in", Content: []byte("x")}}
		r.clean(t)
		b, err := r.collect(t)
		if err != nil {
			r.Errorf("%s: %v", c.name, err)
			continue
		}
		got := slices.DeleteFunc(slices.Clone(b.paths), func(p string) bool { return p == "in" || p == "sub/in" })
		if strings.Join(got, " ") != c.want {
			r.Errorf("%s: collected %q, want %q", c.name, got, c.want)
		}
		for path, content := range b.content {
			if strings.Contains(content, "root:") {
				r.Errorf("%s: %s has another file's content", c.name, path)
			}
		}
		for name, why := range b.skipped {
			if why == "" || name == "good" {
				r.Errorf("%s: %q was skipped: %q", c.name, name, why)
			}
		}
	}
	const script = `ln -s /etc/passwd passwd; mkfifo pipe; mkdir real; ln -s real dir; echo x >real/file`
	for _, glob := range []string{"passwd", "pipe", "dir/", "dir/file"} {
		b, err := r.left(script, executor.Outputs{Paths: []string{glob}})
		missing, ok := errors.AsType[*executor.MissingOutputError](err)
		if !ok || missing.Glob != glob || missing.Why == "" || len(b.paths) > 0 {
			r.Errorf("%s: got %v with %v, want it missing, and why", glob, err, b.paths)
		}
	}
}

// testHostileEarlier: what an earlier attempt leaves leads none of the next one's files anywhere.
func testHostileEarlier(r *Rig) {
	for _, outputs := range []bool{false, true} {
		bad := r.shell(`ln -s /tmp in; ln -s /etc/passwd file; mkdir sub; ln -s / sub/root; mkdir deny; chmod 0 deny .`)
		if outputs {
			bad = wants(bad, "./")
		}
		r.run(bad)
		again := wants(r.shell("[ ! -L in ] && [ ! -L file ] && [ ! -e sub ] && [ ! -e deny ] && cat in/x file"), "in/x")
		again.ID = executor.ID{Job: bad.Job, Task: bad.ID.Task, Attempt: 2, Token: bad.Token + 1000}
		again.Files = []executor.File{{Path: "in/x", Content: []byte("mine\n")}, {Path: "file", Content: []byte("own\n")}}
		b := r.collected(again)
		if got := r.Written(again.ID, "stdout"); got != "mine\nown\n" || b.content["in/x"] != "mine\n" {
			r.Errorf("outputs %v: the next attempt found %q, left %v", outputs, got, b.content)
		}
	}
}

// testUsage: what an attempt has used is told, with how it was measured.
func testUsage(r *Rig) {
	res := r.run(r.shell(`dd if=/dev/zero of=/dev/null bs=60000000 count=1 2>/dev/null && i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done`))
	u := res.Usage
	if res.ExitCode != 0 || u.MemoryFrom == executor.UsageUnknown || u.TimeFrom == executor.UsageUnknown {
		r.Fatalf("got %+v, want usage with its sources", res)
	}
	if u.PeakMemory < 60_000_000 || u.PeakMemory > 4<<30 {
		r.Errorf("peak memory of %d bytes, want at least 60,000,000", u.PeakMemory)
	}
	if used := u.User + u.System; used < 10*time.Millisecond || used > 8*res.Run+time.Second {
		r.Errorf("processor time %s + %s in a run of %s", u.User, u.System, res.Run)
	}
	before := u
	if u = r.run(r.shell("exit 0")).Usage; u.PeakMemory >= before.PeakMemory || u.User+u.System >= before.User+before.System {
		r.Errorf("a small task after it used %+v, want less than %+v", u, before)
	}
}
