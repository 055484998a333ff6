package node

import (
	"strings"
	"testing"
	"time"
)

// Found by review: odds were promised though no start had been seen yet.
func TestOddsAreNamedOnceTheyAreKnown(t *testing.T) {
	e := Estimate{P50: time.Minute, P90: time.Hour}
	if text := whenText(e); strings.Contains(text, "ten") || !strings.Contains(text, "a rough guess") {
		t.Error(text)
	}
	e.Calibrated = true
	if text := whenText(e); !strings.Contains(text, "nine times of ten") || strings.Contains(text, "rough") {
		t.Error(text)
	}
}
