package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestBootstrapOnExistingDataIsRefused: it would found a second federation
// over the first one's state.
func TestBootstrapOnExistingDataIsRefused(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 1)
	site := fed.Sites[0]
	must(t, site.Kill())
	code, out := broker(t, "--config", filepath.Join(site.Dir, "config.yaml"), "--bootstrap")
	if code != 2 || !strings.Contains(out, "bootstrap") || !strings.Contains(out, "data") {
		t.Errorf("exit %d, want 2 and the reason:\n%s", code, out)
	}
	must(t, fed.Restart(within(t), site)) // no harm was done
}

// TestDuplicateSiteNameIsRefused: a second broker under a name that is taken.
func TestDuplicateSiteNameIsRefused(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 1)
	if _, err := fed.Sites[0].Invite(within(t), fed.Sites[1].Name); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a second %s is invited: %v", fed.Sites[1].Name, err)
	}
	// Whoever finds the invitation that was used has another key.
	code, out := broker(t, rejoinArgs(t, fed.Sites[1], filepath.Join(t.TempDir(), "other"))...)
	if code != 5 || !strings.Contains(out, "was used, with another key") {
		t.Errorf("exit %d, want a refusal that says why:\n%s", code, out)
	}
	agree(t, fed)
}

// TestWipedSiteIsRefused: a known name with fresh data has forgotten what it
// promised, as a voter and as a broker.
func TestWipedSiteIsRefused(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	victim := fed.Sites[2]
	must(t, victim.Kill())
	code, out := broker(t, rejoinArgs(t, victim, filepath.Join(t.TempDir(), "fresh"))...)
	if code != 5 || !strings.Contains(out, "was used, with another key") {
		t.Errorf("exit %d, want a refusal that says why:\n%s", code, out)
	}
	must(t, fed.Restart(within(t), victim)) // its old data are still welcome
	agree(t, fed)
}

// TestStartNeedsBootstrapOrJoin: empty data and neither flag, or both.
func TestStartNeedsBootstrapOrJoin(t *testing.T) {
	t.Parallel()
	base := []string{"--site", "lonely", "--http", freeAddress(t), "--peer", freeAddress(t)}
	for name, more := range map[string][]string{
		"neither": {},
		"both":    {"--bootstrap", "--join", "csi_x"},
		"address": {"--join", "127.0.0.1:1"},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		code, out := broker(t, append(append(base, "--data-dir", dir), more...)...)
		if code != 2 || !strings.Contains(out, "--join") {
			t.Errorf("%s: exit %d, want 2 and a word about --join:\n%s", name, code, out)
		}
	}
}

// TestOpenListenerNeedsInsecure: nobody is on the network by accident.
func TestOpenListenerNeedsInsecure(t *testing.T) {
	t.Parallel()
	code, out := broker(t, "--site", "open", "--http", "0.0.0.0:0", "--peer", freeAddress(t),
		"--data-dir", filepath.Join(t.TempDir(), "data"), "--bootstrap")
	if code != 2 || !strings.Contains(out, "insecure") {
		t.Errorf("exit %d, want 2 and a word about --insecure:\n%s", code, out)
	}
}

// broker runs one that is expected to refuse, and returns its exit code and
// what it said.
func broker(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(within(t), 40*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, cloudshare, append([]string{"broker"}, args...)...)
	text, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("broker %v did not refuse, it runs:\n%s", args, text)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run broker: %v", err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// rejoinArgs are those of a broker that joins by the invitation that a site has used.
func rejoinArgs(t *testing.T, used *testbed.Site, dir string) []string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	return []string{
		"--site", used.Name, "--data-dir", dir, "--join", "@" + filepath.Join(used.Dir, "invitation"),
		"--http", freeAddress(t), "--peer", freeAddress(t), "--gossip", freeAddress(t),
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	addr, err := testbed.FreeAddress()
	must(t, err)
	return addr
}
