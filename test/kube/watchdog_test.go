//go:build kube

package kube

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// watchdogAt is a free address of a node that its pods reach.
func watchdogAt(t *testing.T, c *cluster.Cluster, node string) string {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(a.Address, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatal("the node has no address")
	return ""
}

// TestWatchdog: with a watchdog another site's task needs no timeout. When its broker
// is killed it is dead with the lease, though its kubelet is well; once its broker is
// back, it runs again.
func TestWatchdog(t *testing.T) {
	c := cluster.Start(t)
	n, err := c.AddNode(t.Context(), "real-1")
	if err != nil {
		t.Fatal(err)
	}
	const image = "cloudshare.test/cloudshare:1"
	if err = n.ImportProgram(t.Context(), image, solo.Binary); err != nil {
		t.Fatal(err)
	}
	at := watchdogAt(t, c, n.Name)
	a := solo.New(t, "a", "--bootstrap", "--cores", "1")
	b := solo.New(t, "b", append(a.Invites("b"), "--commands=false", "--kube-cluster", c.Kubeconfig(), "--kube-threshold", "0",
		"--kube-watchdog-image", image, "--kube-watchdog-listen", at, "--kube-watchdog-url", "http://"+at, "--insecure")...)
	if out := a.Succeeds(a.Accept(shell("echo at $CLOUDSHARE_SITE for $CLOUDSHARE_OWNER"))); out != "at b for a\n" {
		t.Errorf("another site's task said %q", out)
	}
	endless := a.Accept(shell("sleep 1234"))
	runs := func() bool { return slices.Contains(n.Runs(), "sleep 1234") }
	a.Await("it runs", func() error {
		if !runs() {
			return fmt.Errorf("only %q run; %s", n.Runs(), why(a, endless))
		}
		return nil
	})
	b.End(syscall.SIGKILL)
	a.Await("it has run out, and waits again", func() error {
		if task := a.Only(endless); task.State != "queued" {
			return errors.New(task.State)
		}
		return nil
	})
	if runs() {
		t.Errorf("its task is given back, and it runs: %q", n.Runs())
	}
	b.Start()
	a.Await("it runs again", func() error {
		if task := a.Only(endless); task.Attempt != 2 || !runs() {
			return fmt.Errorf("%+v", task)
		}
		return nil
	})
	if err = a.Cancel(t.Context(), endless); err != nil {
		t.Fatal(err)
	}
	a.Reaches(endless, "cancelled")
	b.Await("no Job is left", func() error { return none(t.Context(), c) })
}
