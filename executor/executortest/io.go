package executortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

func testLogs(r *Rig) {
	t := r.shell("echo to out; echo to err >&2")
	r.run(t)
	out, errs := "to out\n", "to err\n"
	either := out
	if r.env.Merged { // from two pipes: in which order is the runtime's affair
		out, either, errs = out+errs, errs+out, ""
	}
	if got := r.Written(t.ID, "stdout"); got != out && got != either {
		r.Errorf("stdout: got %q", got)
	}
	if got := r.Written(t.ID, "stderr"); got != errs {
		r.Errorf("stderr: got %q", got)
	}
	if _, err := r.Logs(r.Context(), t.ID, "stdin", false); err == nil {
		r.Error("stream stdin was given")
	}
}

// testFollow: the task waits for the reader between its lines, so only a
// reader that really follows can get both.
func testFollow(r *Rig) {
	fifo := r.fifo()
	id := r.Begin(r.shell("echo one; read x <" + fifo + "; echo two"))
	out := r.followStdout(id)
	if got := r.line(out); got != "one" {
		r.Fatalf("got %q, want one", got)
	}
	r.write(fifo)
	if got := r.line(out); got != "two" {
		r.Fatalf("got %q, want two", got)
	}
	if _, err := out.ReadByte(); !errors.Is(err, io.EOF) {
		r.Errorf("after the end: got %v, want EOF", err)
	}
	r.AwaitEnd(id)
}

func testFollowCancelled(r *Rig) {
	id := r.Begin(r.shell(forever))
	ctx, cancel := context.WithCancel(r.Context())
	rc, err := r.Logs(ctx, id, "stdout", true)
	r.Must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = io.Copy(io.Discard, rc)
	}()
	cancel()
	r.within(done, "a cancelled follower returns")
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Errorf("got %v, want the context's error or none", err)
	}
	r.Must(rc.Close())
}

// testFollowSeries: output never shows up in another attempt's, however fast
// one follows the other.
func testFollowSeries(r *Rig) {
	for i := range r.many(20) {
		script := "exit 0"
		want := ""
		if i%2 == 1 {
			want = fmt.Sprintf("line %d\n", i)
			script = fmt.Sprintf("echo line %d", i)
		}
		id := r.Begin(r.shell(script))
		rc, err := r.Logs(r.Context(), id, "stdout", true)
		r.Must(err)
		all := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(rc)
			all <- string(b)
		}()
		r.AwaitEnd(id)
		next := r.Begin(r.shell("echo another; exit 0"))
		select {
		case got := <-all:
			if got != want {
				r.Errorf("attempt %d: got %q, want %q", i, got, want)
			}
		case <-time.After(r.env.Patience):
			r.Fatalf("attempt %d: the follower does not end", i)
		}
		r.Must(rc.Close())
		r.AwaitEnd(next)
	}
}

func testLogsUnknown(r *Rig) {
	if _, err := r.Logs(r.Context(), r.task("x").ID, "stdout", false); !errors.Is(err, executor.ErrUnknownAttempt) {
		r.Errorf("got %v, want ErrUnknownAttempt", err)
	}
}

func testEnvironment(r *Rig) {
	// For all of the process, whose handlers may be tested side by side.
	r.Must(os.Setenv("BROKERS_OWN", "secret"))
	t := r.shell("env")
	t.Env = map[string]string{"COLOR": "red & blue", "CLOUDSHARE_TOKEN": "forged"}
	t.Attempt, t.Token = 3, 77
	r.run(t)
	got := map[string]string{}
	for l := range strings.Lines(r.Written(t.ID, "stdout")) {
		k, v, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "=")
		got[k] = v
	}
	want := map[string]string{
		"CLOUDSHARE_JOB": t.Job, "CLOUDSHARE_TASK": fmt.Sprint(t.ID.Task), "CLOUDSHARE_ATTEMPT": "3",
		"CLOUDSHARE_TOKEN": "77", "CLOUDSHARE_SITE": r.env.Site, "CLOUDSHARE_OWNER": "site-1", "COLOR": "red & blue",
	}
	for k, v := range want {
		if got[k] != v {
			r.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	if _, leaked := got["BROKERS_OWN"]; leaked {
		r.Error("the broker's environment leaked into the task")
	}
	if got["PATH"] == "" || got["HOME"] == "" {
		r.Errorf("PATH %q, HOME %q: want both", got["PATH"], got["HOME"])
	}
}

// testWorkdir: empty, writable, one's own, also after others used theirs.
func testWorkdir(r *Rig) {
	const script = `ls -A | wc -l; touch file && mkdir -p a/b && chmod 0 a && chmod 500 . && cat /dev/stdin | wc -c`
	for range 3 {
		t := r.shell(script)
		if res := r.run(t); res.ExitCode != 0 {
			r.Errorf("got %+v and %q", res, r.Written(t.ID, "stderr"))
		}
		if f := strings.Fields(r.Written(t.ID, "stdout")); len(f) != 2 || f[0] != "0" || f[1] != "0" {
			r.Errorf("files at the start and bytes on stdin: got %v, want none", f)
		}
	}
}

func (r *Rig) write(fifo string) {
	r.Helper()
	r.Must(writeFile(fifo, "go\n"))
}
