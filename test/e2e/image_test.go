package e2e

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestImageNobodyRuns: where only commands run, a job with an image is refused
// if it asks to be, and otherwise waits and says why.
func TestImageNobodyRuns(t *testing.T) {
	t.Parallel()
	const why = "no present site runs container images"
	site := start(t, 1, 1).Sites[0]
	code, out, notes := cli(t, site, "submit", "--strict", "--image", "alpine:3", "--", "true")
	if code != 5 || out != "" || !strings.Contains(notes, why) {
		t.Errorf("strict: exit %d, %q, %q; want 5 and the reason", code, out, notes)
	}
	code, out, notes = cli(t, site, "submit", "--image", "alpine:3", "--", "true")
	if code != 0 || !strings.Contains(notes, "queued: "+why) {
		t.Fatalf("exit %d, %q, %q; want a job and the reason why it waits", code, out, notes)
	}
	id := strings.TrimSpace(out)
	job, err := site.Job(within(t), id)
	must(t, err)
	if job.State != "queued" || job.Reason != why {
		t.Errorf("%s is %s: %q", id, job.State, job.Reason)
	}
	if tasks := tasksOf(t, site, id); tasks[0].Attempt != 0 {
		t.Errorf("attempt %d: it was tried", tasks[0].Attempt)
	}
	if _, out, _ = cli(t, site, "sites", "-o", "yaml"); !strings.Contains(out, "- commands") || strings.Contains(out, "- images") {
		t.Errorf("sites:\n%s", out)
	}
}

// cli runs the command line against a site.
func cli(t *testing.T, s *testbed.Site, args ...string) (code int, out, notes string) {
	t.Helper()
	cmd := exec.CommandContext(within(t), cloudshare, append([]string{
		args[0], "--addr", s.URL.String(), "--token-file", s.TokenFile(),
	}, args[1:]...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
