package jobspec

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90d": 90 * day, "2w": 14 * day, "1w2d": 9 * day, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "0d": 0, "0": 0,
		"1w1h30m": 7*day + 90*time.Minute, "720h": 720 * time.Hour, "90s": 90 * time.Second, "-1m": -time.Minute, "106751d": 106751 * day,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "90", "d", "w", "90 d", "90days", "1d2w", "1d2d", "1h2d", "-1d", "1d-1h", "1d+1h", "+1d", "1e3d", "1..5d", "1d5", "1y", "1m1w",
		"106752d", "15251w", "15250w5d", "106751d24h", "99999999999999999999d", "1_0d", "0x1d", "∞d",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
