//go:build container

package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestNothingStarts: what is wrong with a site is no task's failure, and no loss of it.
func TestNothingStarts(t *testing.T) {
	t.Parallel()
	cfg := config(t, engines.Start(t, engines.Docker)) // Podman makes a folder that is not there
	dir := filepath.Join(t.TempDir(), "later")
	cfg.Mounts = []string{dir + ":/later"}
	r := open(t, cfg)
	for range 3 {
		if res := r.AwaitEnd(r.Begin(r.shell("true"))); res.Cause != executor.Declined || !strings.Contains(res.Detail, "not started, by its site's trouble") {
			t.Errorf("got %+v, want it declined", res)
		}
	}
	r.Must(os.Mkdir(dir, 0o700))
	if got := r.said("ls -d /later"); got != "/later" {
		t.Errorf("once it is mended: %q", got)
	}
}
