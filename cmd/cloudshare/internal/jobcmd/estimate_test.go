package jobcmd

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// TestEstimateText: what is unknown or not judged is said so.
func TestEstimateText(t *testing.T) {
	if got := estimateText(wire.WhyEstimate{Unknown: "no history"}); got != "no estimate: no history" {
		t.Error(got)
	}
	p50, p90 := -1.0, 1e300
	if got := estimateText(wire.WhyEstimate{P50: &p50, P90: &p90, Waits: 20}); !strings.HasSuffix(got, "from the last 20 waits; none judged so far") {
		t.Error(got)
	}
	if got := estimateText(wire.WhyEstimate{P50: &p50, P90: &p90}); got != "at once, as things stand" {
		t.Error(got)
	}
}
