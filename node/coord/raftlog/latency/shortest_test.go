package latency

import (
	"testing"
	"time"
)

func TestShortestForgets(t *testing.T) {
	var s Shortest
	begin := time.Unix(1_700_000_000, 0)
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }
	if _, ok := s.Min(begin); ok {
		t.Error("the least of nothing")
	}
	s.Add(at(0), 3*time.Millisecond)
	s.Add(at(1), time.Millisecond)
	s.Add(at(2), time.Second) // somebody was busy
	if d, ok := s.Min(begin); !ok || d != time.Millisecond {
		t.Errorf("%v, %v", d, ok)
	}
	if d, ok := s.Min(at(2)); !ok || d != time.Second {
		t.Errorf("what is long ago still counts: %v, %v", d, ok)
	}
	for n := range shortestCount { // a longer way, from now on
		s.Add(at(3+n), 100*time.Millisecond)
	}
	if d, ok := s.Min(begin); !ok || d != 100*time.Millisecond {
		t.Errorf("%v, %v", d, ok)
	}
}
