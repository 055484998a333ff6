//go:build kube

package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAPIServerKilled: the API server comes back at its address with its data.
func TestAPIServerKilled(t *testing.T) {
	c := Start(t)
	if err := c.Namespace(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	c.APIServer.Kill()
	if _, err := c.Client().CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Error("a dead API server answers")
	}
	if err := c.APIServer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
