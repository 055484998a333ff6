package engines

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Registry serves one image, "task" with the tags 1 and 2, as registries do; engines fetch from the
// loopback without transport security.
type Registry struct {
	// Address is host:port.
	Address string
	// Hold, if it is not nil, keeps the image's layer back until it is closed.
	Hold chan struct{}
	// Overloaded has all requests answered with 503.
	Overloaded atomic.Bool
	// Asked is told of each request for the layer.
	Asked chan struct{}
}

// Image returns the name of what it serves.
func (r *Registry) Image() string { return r.Address + "/task:1" }

const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar"
)

// StartRegistry serves until the test ends.
func StartRegistry(t testing.TB) *Registry {
	t.Helper()
	layer, err := Files("fetched-" + rand.Text()) // no layer that an engine has already, or another registry
	if err != nil {
		t.Fatal(err)
	}
	config := encode(t, map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/bin", "FROM_IMAGE=yes"}, "Entrypoint": []string{"/bin/echo", "from the"}, "Cmd": []string{"image"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(layer)}},
	})
	manifest := encode(t, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": map[string]any{"mediaType": configType, "size": len(config), "digest": digestOf(config)},
		"layers": []any{map[string]any{"mediaType": layerType, "size": len(layer), "digest": digestOf(layer)}},
	})
	r := &Registry{Asked: make(chan struct{}, 16)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.serve(w, q, config, manifest, layer)
	}))
	t.Cleanup(s.Close)
	r.Address = s.Listener.Addr().(*net.TCPAddr).String()
	return r
}

func (r *Registry) serve(w http.ResponseWriter, q *http.Request, config, manifest, layer []byte) {
	reply := func(kind string, b []byte) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Docker-Content-Digest", digestOf(b))
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if q.Method != http.MethodHead {
			_, _ = w.Write(b)
		}
	}
	if r.Overloaded.Load() {
		http.Error(w, `{"errors":[{"code":"UNAVAILABLE","message":"overloaded"}]}`, http.StatusServiceUnavailable)
		return
	}
	switch path := strings.TrimSuffix(q.URL.Path, "/"); {
	case path == "/v2":
		w.WriteHeader(http.StatusOK)
	case path == "/v2/task/manifests/1", path == "/v2/task/manifests/2", path == "/v2/task/manifests/"+digestOf(manifest):
		reply(manifestType, manifest)
	case path == "/v2/task/blobs/"+digestOf(config):
		reply("application/octet-stream", config)
	case path == "/v2/task/blobs/"+digestOf(layer):
		select {
		case r.Asked <- struct{}{}:
		default:
		}
		if r.Hold != nil {
			select {
			case <-r.Hold:
			case <-q.Context().Done():
				return
			}
		}
		reply("application/octet-stream", layer)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry"}]}`))
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }
