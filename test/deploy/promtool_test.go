//go:build promtool

package deploy

import (
	"os/exec"
	"testing"
)

// TestPromtool has Prometheus' own tool check the alerts, and have each fire; make
// test-metrics runs it.
func TestPromtool(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = files + "/monitoring"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
