//go:build promtool

package daemon

import (
	"bytes"
	"os/exec"
	"testing"
)

// TestPromtool has Prometheus' own tool check what a broker exposes; make
// test-metrics runs it.
func TestPromtool(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	cmd.Stdin = bytes.NewReader(scrape(t))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s", err, out)
	}
}
