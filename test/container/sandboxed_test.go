//go:build container

package container

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// TestSandboxesInAContainer: a broker in a container of Docker makes sandboxes with the options that the operator's
// guide names, and with one of them only says what is forbidden, and runs nobody's command.
func TestSandboxesInAContainer(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	// What --security-opt systempaths=unconfined is for the engine.
	whole := map[string]any{"MaskedPaths": []string{}, "ReadonlyPaths": []string{}}
	calls := []string{"seccomp=unconfined"}
	for _, c := range []struct {
		name  string
		calls []string
		paths map[string]any
		says  string
	}{
		{"both", calls, whole, "run in sandboxes"},
		{"calls only", calls, nil, "or an engine that masks parts of it"},
		{"paths only", nil, whole, "may users make user namespaces here?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := brokerIn(t, e, c.calls, c.paths)
			s.Await("it says what holds", func() error { return says(s, "/v1/status", c.says) })
			if c.name != "both" {
				return
			}
			id := s.Accept(map[string]any{"command": []string{"/bin/sh", "-c", "ls /; id -u; kill -9 -1"}})
			s.Reaches(id, "failed")
			s.Says(id, "bin\ndev\netc\nproc\nsys\ntmp\nvar\n65534\n")
		})
	}
}

// brokerIn runs a broker in a container whose only programs are busybox and this one.
func brokerIn(t *testing.T, e *engines.Engine, calls []string, paths map[string]any) *solo.Broker {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700))
	s := &solo.Broker{T: t, Site: &testbed.Site{Name: "a", Dir: dir, URL: &url.URL{Scheme: "http", Host: solo.FreeAddress(t)}}}
	host := map[string]any{
		"NetworkMode": "host", "SecurityOpt": calls, "Binds": []string{solo.Binary + ":/bin/cloudshare:ro", dir + ":" + dir},
	}
	for name, value := range paths {
		host[name] = value
	}
	id := run(t, e, map[string]any{
		"Image": engines.Image, "Env": []string{"CLOUDSHARE_DATA_DIR=" + dir, "CLOUDSHARE_SANDBOX_TASKS=all"},
		"Cmd": []string{
			"/bin/cloudshare", "broker", "--site=a", "--bootstrap", "--http=" + s.URL.Host, "--peer=" + solo.FreeAddress(t),
			"--gossip=127.0.0.1:0",
		},
		"HostConfig": host,
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the broker said:\n%s", said(t, e, id))
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute) // the test's own is over
		defer cancel()
		if _, err := e.Call(ctx, http.MethodDelete, "/v1.41/containers/"+id+"?force=1", nil); err != nil {
			t.Errorf("remove the broker's container: %v", err)
		}
	})
	s.Await("the site is ready", func() error { return s.Ready(t.Context()) })
	return s
}
