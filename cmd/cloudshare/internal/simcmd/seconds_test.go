package simcmd

import (
	"math"
	"testing"
)

// A site's waits may add up to more than a time.Duration, 292 years, holds.
func TestSecondsOfCenturies(t *testing.T) {
	for s, want := range map[int64]string{
		0: "0s", 59: "59s", 60: "1m0s", 3600: "1h0m0s", 90061: "25h1m1s",
		1e11: "27777777h46m40s", math.MaxInt64: "2562047788015215h30m7s",
	} {
		if got := seconds(s); got != want {
			t.Errorf("%d seconds are %s, want %s", s, got, want)
		}
	}
}
