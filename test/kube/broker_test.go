//go:build kube

package kube

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
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
	a := solo.New(t, "a", "--bootstrap", "--cores", "1")
	b := solo.New(t, "b", append(a.Invites("b"), "--commands=false", "--kube-cluster", c.Kubeconfig(), "--kube-threshold", "0",
		"--kube-images", "cloudshare.test/*", "--kube-start-limit", "30s")...)
	foreign := shell("echo at $CLOUDSHARE_SITE for $CLOUDSHARE_OWNER")
	foreign["timeout"] = "60s"
	if out := a.Succeeds(a.Accept(foreign)); out != "at b for a\n" {
		t.Errorf("another site's task said %q", out)
	}
	endless := a.Accept(shell("sleep 1000"))
	a.Await("it is declined for want of a timeout", func() error {
		if r := why(a, endless); !strings.Contains(r, `"why":"declined"`) {
			return errors.New(r)
		}
		return nil
	})
	if err := a.Cancel(t.Context(), endless); err != nil {
		t.Fatal(err)
	}
	own := b.Accept(shell("echo begun; sleep 6; echo ended"))
	b.Says(own, "begun\n")
	b.End(syscall.SIGKILL)
	b.Start()
	if out := b.Succeeds(own); out != "begun\nended\n" || b.Only(own).Attempt != 1 {
		t.Errorf("attempt %d said %q, want one run", b.Only(own).Attempt, out)
	}
	refused := shell("true")
	refused["image"] = "alpine"
	if j := b.Reaches(b.Accept(refused), "failed"); !strings.Contains(b.Only(j.ID).Reason, "not among those that this site allows") {
		t.Errorf("an image that is not allowed: %q", b.Only(j.ID).Reason)
	}
	stopped := b.Accept(shell("sleep 1000"))
	b.Reaches(stopped, "running")
	if err := b.Cancel(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	b.Reaches(stopped, "cancelled")
	b.Await("no Job is left", func() error { return none(t.Context(), c) })
}

// TestClusterAway: a site whose cluster is out of reach starts, says so, and offers
// what it has when the cluster is there.
func TestClusterAway(t *testing.T) {
	c := cluster.Start(t)
	if _, err := c.AddFakeNodes(t.Context(), 1, cluster.Size{CPU: "10", Memory: "16Gi"}); err != nil {
		t.Fatal(err)
	}
	c.APIServer.Kill()
	s := solo.New(t, "a", "--bootstrap", "--commands=false", "--kube-cluster", c.Kubeconfig())
	id := s.Accept(map[string]any{"image": "example.org/task:1", "command": []string{"run"}})
	s.Reaches(id, "queued")
	if err := c.APIServer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j := s.Reaches(id, "succeeded", "failed", "lost"); j.State != "succeeded" {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
}
