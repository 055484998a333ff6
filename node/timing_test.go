package node

import (
	"strings"
	"testing"
	"time"
)

func TestTimingIsRefusedWithTheInequalityThatFails(t *testing.T) {
	for _, test := range []struct {
		timing Timing
		want   string
	}{
		{Timing{6 * time.Second, time.Second, time.Second}, ""},
		{Timing{30 * time.Second, 3 * time.Second, 5 * time.Second}, ""},
		{Timing{6 * time.Second, time.Second, 3 * time.Second}, "lease/2"},
		{Timing{6 * time.Second, 100 * time.Millisecond, time.Second}, "margin ≥"},
		{Timing{0, time.Second, time.Second}, "lease is"},
		{Timing{6 * time.Second, time.Second, -1}, "negative"},
	} {
		err := test.timing.Validate()
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.timing, err, test.want)
		}
	}
}
