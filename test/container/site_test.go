//go:build container

package container

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// limit of one wait.
const limit = 90 * time.Second

// cloudshare is the binary, built once for all tests.
var cloudshare string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cloudshare-container-")
	if err != nil {
		panic(err)
	}
	if cloudshare, err = testbed.Build(context.Background(), dir); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// site is one broker with a command line of its own.
type site struct {
	*testbed.Site
	t    *testing.T
	peer string
	args []string
	cmd  *exec.Cmd
}

// newSite starts a site with free ports; its broker founds a federation unless
// args say whom to join.
func newSite(t *testing.T, name string, args ...string) *site {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	must(t, os.MkdirAll(dir, 0o700))
	http := free(t)
	s := &site{t: t, peer: free(t), Site: &testbed.Site{Name: name, URL: &url.URL{Scheme: "http", Host: http}, Dir: dir}}
	s.args = append([]string{
		"broker", "--site", name, "--data-dir", dir, "--http", http, "--peer", s.peer, "--gossip", "127.0.0.1:0",
		"--cores", "1", "--if-empty", "--log-level", "debug",
	}, args...)
	t.Cleanup(func() {
		s.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s\n%s", name, s.LogTail(40))
		}
	})
	s.start()
	return s
}

// containers are the flags of a site with one core for them.
func containers(e *engines.Engine, more ...string) []string {
	return append([]string{"--container-engine", e.Address, "--container-cores", "1", "--container-network", "none"}, more...)
}

func free(t *testing.T) string {
	t.Helper()
	addr, err := testbed.FreeAddress()
	must(t, err)
	return addr
}

// start starts the broker, again after end, and waits until it is ready.
func (s *site) start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.Dir, "broker.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(s.t, err)
	defer log.Close()
	s.cmd = exec.Command(cloudshare, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	must(s.t, s.cmd.Start())
	s.await(s.Name+" ready", func() error { return s.Ready(s.t.Context()) })
}

// end ends the broker, unless it has ended.
func (s *site) end(sig syscall.Signal) {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *site) await(what string, cond func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	if err := testbed.Await(ctx, what, cond); err != nil {
		s.t.Fatalf("%v\n%s", err, s.LogTail(20))
	}
}

// submit has a job accepted and returns its id.
func (s *site) submit(spec map[string]any) string {
	s.t.Helper()
	body, err := json.Marshal(spec)
	must(s.t, err)
	b, _, err := s.Do(s.t.Context(), http.MethodPost, "/v1/jobs", http.Header{"Content-Type": {"application/json"}}, body)
	must(s.t, err)
	var a testbed.Accepted
	must(s.t, json.Unmarshal(b, &a))
	return a.ID
}

// shell is a job that runs a script in the busybox.
func shell(script string) map[string]any {
	return map[string]any{"image": engines.Image, "command": []string{"/bin/sh", "-c", script}}
}

// job waits until a job is in one of these states.
func (s *site) job(id string, states ...string) testbed.Job {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	j, err := s.AwaitJob(ctx, id, states...)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.LogTail(20))
	}
	return j
}

// succeeds waits for a job's end and returns its output.
func (s *site) succeeds(id string) string {
	s.t.Helper()
	if j := s.job(id, "succeeded", "failed", "lost", "cancelled"); j.State != "succeeded" {
		s.t.Fatalf("%s is %s: %s\n%s", id, j.State, j.Reason, s.LogTail(20))
	}
	out, err := s.Logs(s.t.Context(), id, 0)
	must(s.t, err)
	return out
}

// says waits until the job's only task has written that: until it runs.
func (s *site) says(id, text string) {
	s.t.Helper()
	s.await(id+" says "+text, func() error {
		out, err := s.Logs(s.t.Context(), id, 0)
		if err == nil && out != text {
			err = &reasonError{"it says " + out}
		}
		return err
	})
}

// only is the job's only task.
func (s *site) only(id string) testbed.Task {
	s.t.Helper()
	tasks, err := s.Tasks(s.t.Context(), id)
	must(s.t, err)
	return tasks[0]
}

// running says how many containers of ours the engine runs.
func running(ctx context.Context, e *engines.Engine) (int, error) {
	b, err := e.Call(ctx, http.MethodGet, `/v1.41/containers/json?filters={"label":["cloudshare.site"]}`, nil)
	return strings.Count(string(b), `"ImageID"`), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// none is an error as long as containers run.
func none(ctx context.Context, e *engines.Engine) error {
	n, err := running(ctx, e)
	if err == nil && n > 0 {
		err = errors.New(strconv.Itoa(n) + " containers run")
	}
	return err
}

// reasonError says what was there instead of what was awaited.
type reasonError struct{ reason string }

// Error implements error.
func (e *reasonError) Error() string { return e.reason }
