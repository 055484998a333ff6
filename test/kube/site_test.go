//go:build kube

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// limit of one wait.
const limit = 90 * time.Second

// cloudshare is the binary, built once for all tests.
var cloudshare string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cloudshare-kube-")
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
	*testing.T
	peer string
	args []string
	cmd  *exec.Cmd
}

// newSite starts a site with free ports.
func newSite(t *testing.T, name string, args ...string) *site {
	t.Helper()
	s := &site{T: t, Site: &testbed.Site{Name: name, URL: &url.URL{Scheme: "http"}, Dir: filepath.Join(t.TempDir(), name)}}
	var err error
	if s.URL.Host, err = testbed.FreeAddress(); err == nil {
		if s.peer, err = testbed.FreeAddress(); err == nil {
			err = os.MkdirAll(s.Dir, 0o700)
		}
	}
	s.must(err)
	s.args = append([]string{
		"broker", "--site", name, "--data-dir", s.Dir, "--http", s.URL.Host, "--peer", s.peer, "--gossip", "127.0.0.1:0", "--if-empty", "--log-level", "debug",
	}, args...)
	t.Cleanup(func() {
		s.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s\n%s", name, s.LogTail(60))
		}
	})
	s.start()
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%v\n%s", err, s.LogTail(20))
	}
}

// start starts the broker, again after end, and waits until it is ready.
func (s *site) start() {
	s.Helper()
	log, err := os.OpenFile(filepath.Join(s.Dir, "broker.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	s.must(err)
	defer log.Close()
	s.cmd = exec.Command(cloudshare, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.must(s.cmd.Start())
	s.await("ready", func() error { return s.Ready(s.Context()) })
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
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	s.must(testbed.Await(ctx, s.Site.Name+": "+what, cond))
}

// submit has a job accepted and returns its id.
func (s *site) submit(spec map[string]any) string {
	s.Helper()
	body, err := json.Marshal(spec)
	s.must(err)
	b, _, err := s.Do(s.Context(), http.MethodPost, "/v1/jobs", http.Header{"Content-Type": {"application/json"}}, body)
	s.must(err)
	var a testbed.Accepted
	s.must(json.Unmarshal(b, &a))
	return a.ID
}

// shell is a job that runs a script in the nodes' image.
func shell(script string) map[string]any {
	return map[string]any{"image": cluster.Image, "command": []string{"/bin/sh", "-c", script}}
}

// job waits until a job is in one of these states.
func (s *site) job(id string, states ...string) testbed.Job {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	j, err := s.AwaitJob(ctx, id, states...)
	s.must(err)
	return j
}

// succeeds waits for a job's end and returns its output.
func (s *site) succeeds(id string) string {
	s.Helper()
	if j := s.job(id, "succeeded", "failed", "lost", "cancelled"); j.State != "succeeded" {
		s.Fatalf("%s is %s: %s\n%s", id, j.State, j.Reason, s.LogTail(20))
	}
	out, err := s.Logs(s.Context(), id, 0)
	s.must(err)
	return out
}

// says waits until the job's only task has written that.
func (s *site) says(id, text string) {
	s.Helper()
	s.await(id+" says "+text, func() error {
		out, err := s.Logs(s.Context(), id, 0)
		if err == nil && out != text {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
}

// only is the job's only task.
func (s *site) only(id string) testbed.Task {
	s.Helper()
	tasks, err := s.Tasks(s.Context(), id)
	s.must(err)
	return tasks[0]
}

// why is all that is said of why a job waits.
func (s *site) why(id string) string {
	s.Helper()
	b, _, err := s.Do(s.Context(), http.MethodGet, "/v1/jobs/"+id+"/why", nil, nil)
	s.must(err)
	return string(b)
}

// none is an error as long as there are Jobs in the default namespace.
func none(ctx context.Context, c *cluster.Cluster) error {
	list, err := c.Client().BatchV1().Jobs(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err == nil && len(list.Items) > 0 {
		err = errors.New("Jobs are left")
	}
	return err
}
