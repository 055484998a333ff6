//go:build container

package container_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestFilesOfAnotherUser: the image's user is not the broker's, so the files are made its own, and what it leaves is
// opened up for the broker.
func TestFilesOfAnotherUser(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			if kind == engines.Docker {
				executortest.RunFiles(t, func(t *testing.T) executortest.Env {
					cfg := config(t, e)
					cfg.User = "1234:1234"
					return storage(cfg)
				})
			}
			cfg := config(t, e)
			cfg.User = "1234"
			r := open(t, cfg)
			task := r.shell("[ -O in ] && [ -O run ] && [ -x run ] && [ ! -x in ] && chmod 600 in && touch d/made && ls -A")
			task.Files = []executor.File{
				{Path: "in", Content: []byte("x")}, {Path: "run", Executable: true}, {Path: "d/" + strings.Repeat("n", 255)},
			}
			if res := r.AwaitEnd(r.Begin(task)); res.ExitCode != 0 {
				t.Errorf("got %+v", res)
			}
			if got := r.Written(task.ID, "stdout"); got != "d\nin\nrun\n" {
				t.Errorf("the task sees %q, %q", got, r.Written(task.ID, "stderr"))
			}
		})
	}
}

// TestAbsoluteFiles: at any path, over what the image has, read-only; many of them as copies of the task's own.
func TestAbsoluteFiles(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := open(t, config(t, engines.Start(t, kind)))
			blob := filepath.Join(t.TempDir(), "blob")
			if err := errors.Join(os.WriteFile(blob, []byte("from a blob\n"), 0o400), os.Chmod(blob, 0o444)); err != nil {
				t.Fatal(err)
			}
			few := r.shell("cat /data/in/a /data/in/b in && /opt/run && ! (echo x >>/data/in/a) 2>/dev/null && ! rm /data/in/b 2>/dev/null")
			few.Files = []executor.File{
				{Path: "/data/in/a", Source: blob},
				{Path: "/data/in/b", Content: []byte("inline\n")},
				{Path: "/opt/run", Content: []byte("#!/bin/sh\necho ran\n"), Executable: true},
				{Path: "in", Source: blob},
			}
			if res := r.AwaitEnd(r.Begin(few)); res.ExitCode != 0 {
				t.Errorf("got %+v, %q", res, r.Written(few.ID, "stderr"))
			}
			if got := r.Written(few.ID, "stdout"); got != "from a blob\ninline\nfrom a blob\nran\n" {
				t.Errorf("the task sees %q", got)
			}
			if b, err := os.ReadFile(blob); err != nil || string(b) != "from a blob\n" {
				t.Errorf("the blob is %q, %v", b, err)
			}
			many := r.shell("ls /data/in | wc -l; cat /data/in/99")
			for i := range 100 {
				many.Files = append(many.Files, executor.File{Path: fmt.Sprintf("/data/in/%d", i), Content: fmt.Appendf(nil, "file %d\n", i)})
			}
			res := r.AwaitEnd(r.Begin(many))
			if got := strings.TrimSpace(r.Written(many.ID, "stdout")); got != "100\nfile 99" {
				t.Errorf("%+v: the task sees %q, %q", res, got, r.Written(many.ID, "stderr"))
			}
			own := r.shell("echo more >>/data/in/5 && [ -O /data/in/5 ] && cat /data/in/5")
			own.Files = many.Files
			if res = r.AwaitEnd(r.Begin(own)); res.ExitCode != 0 || r.Written(own.ID, "stdout") != "file 5\nmore\n" {
				t.Errorf("got %+v, %q", res, r.Written(own.ID, "stderr"))
			}
		})
	}
}

// TestFilesReplaceNoWatchdog: an image whose links lead a job's files to our own places has them nowhere near what
// watches its task, which is known by no name to whoever made the image.
func TestFilesReplaceNoWatchdog(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			evil := linked(t, e)
			r := open(t, config(t, e))
			task := r.shell("echo safe; cat /run-link/y/init; exit 7")
			task.Image, task.Owner, task.Fence = evil, "site-9", executor.Boottime()+int64(time.Hour)
			for _, path := range []string{"/run-link/y/init", "/box-link/y/orders", "/run-link/y/fence"} {
				task.Files = append(task.Files, executor.File{Path: path, Content: []byte("#!/bin/sh\necho taken over\n"), Executable: true})
			}
			res := r.AwaitEnd(r.Begin(task))
			if out := r.Written(task.ID, "stdout"); res.ExitCode != 7 || out != "safe\n#!/bin/sh\necho taken over\n" {
				t.Errorf("got %+v and %q", res, out)
			}
		})
	}
}

// linked makes an image with links to our own places.
func linked(t *testing.T, e *engines.Engine) string {
	t.Helper()
	call := func(path, body string) {
		t.Helper()
		if _, err := e.Call(t.Context(), "POST", path, strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	const script = "mkdir /run-link /box-link && ln -s /.cloudshare/run /run-link/y && ln -s /.cloudshare/box /box-link/y"
	call("/containers/create?name=linker", fmt.Sprintf(`{"Image":%q,"Entrypoint":["/bin/sh"],"Cmd":["-c",%q],"HostConfig":{"NetworkMode":"none"}}`,
		engines.Image, script))
	call("/containers/linker/start", "")
	call("/containers/linker/wait", "")
	call("/commit?container=linker&repo=cloudshare.test/evil&tag=latest", "{}")
	return "cloudshare.test/evil:latest"
}
