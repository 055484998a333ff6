//go:build kube

package kube

import (
	"context"
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

func TestMain(m *testing.M) { solo.Main(m) }

// shell is a job that runs a script in the nodes' image.
func shell(script string) map[string]any { return solo.Shell(cluster.Image, script) }

// why is all that a site says of why a job waits.
func why(s *solo.Broker, id string) string {
	s.Helper()
	b, _, err := s.Do(s.Context(), http.MethodGet, "/v1/jobs/"+id+"/why", nil, nil)
	s.Must(err)
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
