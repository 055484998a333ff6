//go:build container

package container

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// loadImage loads what `make image` has made and returns its name.
func loadImage(t *testing.T, e *engines.Engine) string {
	t.Helper()
	path, name := os.Getenv("CLOUDSHARE_IMAGE"), os.Getenv("CLOUDSHARE_IMAGE_TAG")
	if path == "" || name == "" {
		t.Fatal("CLOUDSHARE_IMAGE and CLOUDSHARE_IMAGE_TAG must name the image: run make test-container")
	}
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	_, err = e.Call(t.Context(), http.MethodPost, "/v1.41/images/load", f)
	must(t, err)
	return name
}

// run makes a container and starts it; its id is returned.
func run(t *testing.T, e *engines.Engine, spec map[string]any) string {
	t.Helper()
	body, err := json.Marshal(spec)
	must(t, err)
	b, err := e.Call(t.Context(), http.MethodPost, "/v1.41/containers/create", bytes.NewReader(body))
	must(t, err)
	var made struct {
		ID string `json:"Id"`
	}
	must(t, json.Unmarshal(b, &made))
	_, err = e.Call(t.Context(), http.MethodPost, "/v1.41/containers/"+made.ID+"/start", nil)
	must(t, err)
	return made.ID
}

func said(t *testing.T, e *engines.Engine, id string) string {
	t.Helper()
	b, err := e.Call(t.Context(), http.MethodGet, "/v1.41/containers/"+id+"/logs?stdout=1&stderr=1", nil)
	must(t, err)
	return string(b)
}

// TestImage: what make image built runs at both engines, as its own user.
func TestImage(t *testing.T) {
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			e := engines.Start(t, kind)
			name := loadImage(t, e)
			id := run(t, e, map[string]any{
				"Image": name, "Cmd": []string{"version"},
				"HostConfig": map[string]any{"NetworkMode": "none", "LogConfig": map[string]any{"Type": "json-file"}},
			})
			_, err := e.Call(t.Context(), http.MethodPost, "/v1.41/containers/"+id+"/wait", nil)
			must(t, err)
			version := name[strings.LastIndexByte(name, ':')+1:]
			if out := said(t, e, id); !strings.Contains(out, version) {
				t.Errorf("it said %q, want version %s", out, version)
			}
			b, err := e.Call(t.Context(), http.MethodGet, "/v1.41/images/"+name+"/json", nil)
			must(t, err)
			if !strings.Contains(string(b), `"65532:65532"`) {
				t.Errorf("not of user 65532: %s", b)
			}
			_, err = e.Call(t.Context(), http.MethodDelete, "/v1.41/containers/"+id+"?force=1", nil)
			must(t, err)
		})
	}
}

// TestSiteInAContainer: a broker as in deploy/compose, with its data at the same
// path inside and outside; its tasks are containers beside it. Only the network
// is another one: this machine's, on loopback.
func TestSiteInAContainer(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	name := loadImage(t, e)
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700))
	socket := strings.TrimPrefix(e.Address, "unix://")
	s := &solo.Broker{T: t, Site: &testbed.Site{Name: "a", Dir: dir, URL: &url.URL{Scheme: "http", Host: solo.FreeAddress(t)}}}
	env := []string{
		"CLOUDSHARE_IF_EMPTY=true", "CLOUDSHARE_COMMANDS=false", "CLOUDSHARE_CONTAINER_ENGINE=unix:///var/run/docker.sock",
		"CLOUDSHARE_CONTAINER_CORES=1", "CLOUDSHARE_LOG_FORMAT=json", "CLOUDSHARE_DATA_DIR=" + dir, "CLOUDSHARE_CONTAINER_NETWORK=none",
	}
	id := run(t, e, map[string]any{
		"Image": name, "User": "0:0", "Env": env,
		"Cmd":        []string{"broker", "--site=a", "--bootstrap", "--http=" + s.URL.Host, "--peer=" + solo.FreeAddress(t), "--gossip=127.0.0.1:0"},
		"HostConfig": map[string]any{"NetworkMode": "host", "Binds": []string{socket + ":/var/run/docker.sock", dir + ":" + dir}},
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the broker said:\n%s", said(t, e, id))
		}
	})
	s.Await("the site is ready", func() error { return s.Ready(t.Context()) })
	first := s.Accept(shell("echo from $CLOUDSHARE_SITE; sleep 3; echo done"))
	s.Reaches(first, "running")
	_, err := e.Call(t.Context(), http.MethodPost, "/v1.41/containers/"+id+"/restart?t=20", nil) // with the same command line
	must(t, err)
	s.Await("the site is ready again", func() error { return s.Ready(t.Context()) })
	if out := s.Succeeds(first); out != "from a\ndone\n" || s.Only(first).Attempt != 1 {
		t.Errorf("it said %q in attempt %d", out, s.Only(first).Attempt)
	}
	_, err = e.Call(t.Context(), http.MethodDelete, "/v1.41/containers/"+id+"?force=1", nil)
	must(t, err)
}
