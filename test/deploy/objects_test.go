//go:build kube

package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// objectsIn reads manifests: documents of YAML.
func objectsIn(t testing.TB, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var v map[string]any
		if err := documents.Decode(&v); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if v == nil { // comments only
			continue
		}
		b, err := json.Marshal(v)
		must(t, err)
		o := &unstructured.Unstructured{}
		must(t, o.UnmarshalJSON(b))
		out = append(out, o)
	}
}

func nameOf(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

// server applies manifests as kubectl would.
type server struct {
	objects dynamic.Interface
	kinds   meta.RESTMapper
}

func newServer(t testing.TB, c *cluster.Cluster) server {
	t.Helper()
	objects, err := dynamic.NewForConfig(c.Config())
	must(t, err)
	asked, err := discovery.NewDiscoveryClientForConfig(c.Config())
	must(t, err)
	groups, err := restmapper.GetAPIGroupResources(asked)
	must(t, err)
	return server{objects, restmapper.NewDiscoveryRESTMapper(groups)}
}

func (s server) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	m, err := s.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return s.objects.Resource(m.Resource), nil
	}
	return s.objects.Resource(m.Resource).Namespace(o.GetNamespace()), nil
}

// create makes an object; the server refuses unknown and doubled fields. With
// dryRun it only says what it would do.
func (s server) create(ctx context.Context, o *unstructured.Unstructured, dryRun ...string) error {
	at, err := s.of(o)
	if err == nil {
		_, err = at.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", nameOf(o), err)
	}
	return nil
}

// present says whether an object is there.
func (s server) present(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	at, err := s.of(o)
	if err != nil {
		return false, err
	}
	_, err = at.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
