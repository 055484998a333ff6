//go:build container

package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestNothingStarts: what is wrong with a site fails nobody's task, and the site
// does not take one task after the other to lose it.
func TestNothingStarts(t *testing.T) {
	t.Parallel()
	cfg := config(t, engines.Start(t, engines.Docker)) // Podman makes a folder that is not there
	dir := filepath.Join(t.TempDir(), "later")
	cfg.Mounts = []string{dir + ":/later"}
	r := open(t, cfg)
	for range 3 {
		if res := r.AwaitEnd(r.Begin(r.shell("true"))); res.Cause != executor.Vanished || !strings.Contains(res.Detail, "not started") {
			t.Errorf("got %+v, want a loss", res)
		}
	}
	r.capacity(false)
	if err := r.Start(t.Context(), r.shell("true")); !errors.Is(err, executor.ErrBusy) || !strings.Contains(err.Error(), "no container could be started") {
		t.Errorf("started all the same: %v", err)
	}
	if s := r.Status(); !strings.Contains(s, "no container could be started, tried again in 5s") {
		t.Errorf("status %q", s)
	}
	r.Must(os.Mkdir(dir, 0o700))
	r.capacity(true)
	if got := r.said("ls -d /later"); got != "/later" {
		t.Errorf("once it is mended: %q", got)
	}
}
