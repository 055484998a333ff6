//go:build kube

package kube

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// TestSites: one site has a cluster, the other none. A job with an image goes from
// the one to the other if it has a timeout, since nothing else would end it there
// for certain; the cluster's own site needs none. Its broker may be killed
// meanwhile: the task goes on, once.
func TestSites(t *testing.T) {
	c := cluster.Start(t)
	if _, err := c.AddNode(t.Context(), "real-1"); err != nil {
		t.Fatal(err)
	}
	a := newSite(t, "a", "--bootstrap", "--cores", "1")
	b := newSite(t, "b", "--join", a.peer, "--commands=false", "--kube-cluster", c.Kubeconfig(), "--kube-threshold", "0", "--kube-images", "cloudshare.test/*",
		"--kube-start-limit", "30s")
	foreign := shell("echo at $CLOUDSHARE_SITE for $CLOUDSHARE_OWNER")
	foreign["timeout"] = "60s"
	if out := a.succeeds(a.submit(foreign)); out != "at b for a\n" {
		t.Errorf("another site's task said %q", out)
	}
	endless := a.submit(shell("sleep 1000"))
	a.await("it is declined for want of a timeout", func() error {
		if r := a.why(endless); !strings.Contains(r, `"why":"declined"`) {
			return errors.New(r)
		}
		return nil
	})
	if err := a.Cancel(t.Context(), endless); err != nil {
		t.Fatal(err)
	}
	own := b.submit(shell("echo begun; sleep 6; echo ended"))
	b.says(own, "begun\n")
	b.end(syscall.SIGKILL)
	b.start()
	if out := b.succeeds(own); out != "begun\nended\n" || b.only(own).Attempt != 1 {
		t.Errorf("attempt %d said %q, want one run", b.only(own).Attempt, out)
	}
	refused := shell("true")
	refused["image"] = "alpine"
	if j := b.job(b.submit(refused), "failed"); !strings.Contains(b.only(j.ID).Reason, "not among those that this site allows") {
		t.Errorf("an image that is not allowed: %q", b.only(j.ID).Reason)
	}
	stopped := b.submit(shell("sleep 1000"))
	b.job(stopped, "running")
	if err := b.Cancel(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	b.job(stopped, "cancelled")
	b.await("no Job is left", func() error { return none(t.Context(), c) })
}

// TestClusterAway: a site whose cluster is out of reach starts, says so, and offers
// what it has when the cluster is there.
func TestClusterAway(t *testing.T) {
	c := cluster.Start(t)
	if _, err := c.AddFakeNodes(t.Context(), 1, cluster.Size{CPU: "10", Memory: "16Gi"}); err != nil {
		t.Fatal(err)
	}
	c.APIServer.Kill()
	s := newSite(t, "a", "--bootstrap", "--commands=false", "--kube-cluster", c.Kubeconfig())
	id := s.submit(map[string]any{"image": "example.org/task:1", "command": []string{"run"}})
	s.job(id, "queued")
	if err := c.APIServer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j := s.job(id, "succeeded", "failed", "lost"); j.State != "succeeded" {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
}
