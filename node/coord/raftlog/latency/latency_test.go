package latency

import (
	"testing"
	"time"
)

func TestLatencyIsTheMedianOfRecentOnes(t *testing.T) {
	var l Recent
	now := time.Unix(1_700_000_000, 0)
	if _, ok := l.Median(now); ok {
		t.Error("a median of nothing")
	}
	l.Add(now, time.Millisecond)
	l.Add(now, time.Hour) // a hiccup
	if _, ok := l.Median(now); ok {
		t.Error("a median of two")
	}
	if d, ok := l.Median(now, 2*time.Millisecond); !ok || d != 2*time.Millisecond {
		t.Errorf("with the one under way %v, %v", d, ok)
	}
	for range 10 * sampleCount {
		l.Add(now, 3*time.Millisecond)
	}
	if d, ok := l.Median(now); !ok || d != 3*time.Millisecond {
		t.Errorf("%v, %v", d, ok)
	}
	if _, ok := l.Median(now.Add(2 * sampleKept)); ok {
		t.Error("what is long ago still counts")
	}
	for range Least {
		l.Add(now.Add(2*sampleAge), time.Millisecond)
	}
	if d, ok := l.Median(now.Add(2 * sampleAge)); !ok || d != time.Millisecond {
		t.Errorf("%v, %v: older ones count beside enough newer ones", d, ok)
	}
}
