package config

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Nothing is kept with 0; a bound that leaves no room for a state is refused, and the key is named.
func TestHistoryMaxBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "16Mi": 16 << 20, "2Gi": 2 << 30, "8Mi": -1, "a lot": -1} {
		c := Default()
		c.Site, c.History.MaxBytes = "lab-a", text
		switch err := c.Validate(); {
		case want < 0:
			if cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "history.max_bytes") {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil || c.HistoryBytes() != want:
			t.Errorf("%s: %d, %v", text, c.HistoryBytes(), err)
		}
	}
}
