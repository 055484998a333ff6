package netlab

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// carried plays packets of one size, one a millisecond, and returns when each arrives, -1 = never.
func carried(s *shaper, l Link, packets, size int) []time.Duration {
	var out []time.Duration
	for i := range packets {
		at, ok := s.carry(l, time.Duration(i)*time.Millisecond, size)
		if !ok {
			at = -1
		}
		out = append(out, at)
	}
	return out
}

func TestSameSeedSamePackets(t *testing.T) {
	link := Link{Delay: 50 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.1}
	first := carried(newShaper(7, 1, 2), link, 1000, 100)
	if again := carried(newShaper(7, 1, 2), link, 1000, 100); !slices.Equal(first, again) {
		t.Error("the same seed, hosts and packets, and other arrivals")
	}
	for name, other := range map[string]*shaper{
		"seed": newShaper(8, 1, 2), "direction": newShaper(7, 2, 1), "host": newShaper(7, 1, 3),
	} {
		if slices.Equal(first, carried(other, link, 1000, 100)) {
			t.Errorf("another %s, and the same arrivals", name)
		}
	}
}

func TestDelayJitterAndLoss(t *testing.T) {
	link := Link{Delay: 50 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.1}
	lost, last, more := 0, time.Duration(0), false
	for i, at := range carried(newShaper(7, 1, 2), link, 10_000, 100) {
		if at < 0 {
			lost++
			continue
		}
		took := at - time.Duration(i)*time.Millisecond
		if took < link.Delay || took > link.Delay+link.Jitter {
			t.Fatalf("packet %d took %s", i, took)
		}
		if at < last {
			t.Fatalf("packet %d overtook another one", i)
		}
		last, more = at, more || took > link.Delay+link.Jitter/2
	}
	if lost < 900 || lost > 1100 || !more {
		t.Errorf("%d of 10000 packets lost, jitter seen: %v", lost, more)
	}
}

func TestRateBoundsAndQueueOverflows(t *testing.T) {
	link := Link{Delay: 10 * time.Millisecond, Rate: 1_000_000} // 1000 bytes take 1 ms
	for i, at := range carried(newShaper(1, 1, 2), link, 1000, 1000) {
		if want := time.Duration(i)*time.Millisecond + 11*time.Millisecond; at != want {
			t.Fatalf("packet %d at the link's rate: at %s, want %s", i, at, want)
		}
	}
	arrived := 0
	s := newShaper(1, 1, 2)
	for range 1000 { // all at once
		if _, ok := s.carry(link, 0, 1000); ok {
			arrived++
		}
	}
	if want := int(queueTime/time.Millisecond) + 1; arrived != want {
		t.Errorf("%d packets arrived of a burst, want the %d that fit", arrived, want)
	}
	big := Link{Rate: 100} // one packet takes longer than the queue's time
	if _, ok := newShaper(1, 1, 2).carry(big, 0, 1500); !ok {
		t.Error("a packet had no room on an idle link")
	}
}

func TestWrongLinksAreRefused(t *testing.T) {
	for want, l := range map[string]Link{
		"delay": {Delay: -1}, "jitter": {Jitter: time.Hour}, "loss": {Loss: 1.1}, "rate": {Rate: -1},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if got := (Link{Delay: time.Millisecond, Jitter: time.Second, Loss: 0.01, Rate: 9}).String(); got != "1ms +≤1s, 1% lost, 9 B/s" {
		t.Errorf("a link is described as %q", got)
	}
}
