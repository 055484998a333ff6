package netlab

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// arrivals collects what arrives, and when.
type arrivals struct {
	began time.Time
	seen  chan string
}

func (a *arrivals) write(packet []byte) {
	a.seen <- string(packet) + " at " + time.Since(a.began).String()
}

func TestPacketsTakeTheirTimeAndKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Links{began: time.Now(), shut: make(chan struct{})}
		got := &arrivals{began: l.began, seen: make(chan string, 9)}
		defer l.close()
		expect := func(want string) {
			t.Helper()
			if seen := <-got.seen; seen != want {
				t.Errorf("%s, want %s", seen, want)
			}
		}
		far := func(from, to int) Link { return Link{Delay: time.Duration(10*from+to) * time.Millisecond} }
		packet := []byte("first")

		l.carry(way{1, 2}, packet, got.write)
		expect("first at 0s") // no link yet
		if err := l.SetLinks(1, far, 3); err != nil {
			t.Fatal(err)
		}
		l.carry(way{1, 2}, packet, got.write)
		copy(packet, "other") // its bytes are the caller's again
		l.carry(way{1, 3}, packet, got.write)
		expect("first at 12ms")
		expect("other at 13ms")

		l.carry(way{1, 2}, packet, got.write)
		if err := l.SetLinks(1, func(int, int) Link { return Link{} }, 3); err != nil {
			t.Fatal(err)
		}
		l.carry(way{1, 2}, []byte("later"), got.write) // it does not overtake
		expect("other at 25ms")
		expect("later at 25ms")
		synctest.Wait()
		l.carry(way{1, 2}, []byte("now"), got.write)
		expect("now at 25ms")
	})
}

func TestWrongLinkChangesNothing(t *testing.T) {
	l := &Links{}
	err := l.SetLinks(1, func(from, to int) Link { return Link{Loss: float64(to)} }, 2)
	if err == nil || len(l.links) != 0 {
		t.Errorf("links %v, error %v", l.links, err)
	}
}

func TestRoundTrips(t *testing.T) {
	r := EvenRoundTrips(3, time.Second)
	r[0][2] = time.Minute
	if r.Between(1, 3) != time.Minute || r.Between(3, 1) != time.Minute || r.Between(2, 3) != time.Second {
		t.Errorf("round trips %v", r)
	}
	mix := MixedRoundTrips(5)
	for pair, want := range map[[2]int]int64{{1, 3}: 10, {2, 4}: 80, {5, 1}: 150, {4, 5}: 150} {
		if got := mix.Between(pair[0], pair[1]); got.Milliseconds() != want {
			t.Errorf("mix: %v are %s apart, want %d ms", pair, got, want)
		}
	}
	if few := MixedRoundTrips(1); few.Between(1, 1) != 0 {
		t.Errorf("a mix of one: %v", few)
	}
	for _, pair := range [][2]int{{1, 1}, {0, 1}, {3, 4}} {
		if got := r.Between(pair[0], pair[1]); got != 0 {
			t.Errorf("%v: %s", pair, got)
		}
	}
}

// newLab makes hosts; ok is false where nobody may or can, which is said so.
func newLab(t *testing.T, hosts int) (lab *Lab, ok bool) {
	t.Helper()
	lab, err := New(hosts)
	if os.Geteuid() != 0 {
		if !errors.Is(err, ErrNotRoot) {
			t.Errorf("hosts without root: %v", err)
		}
		return nil, false
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Log("this root has no hosts: ", err)
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab, true
}

// TestPing measures real hosts. How late a busy machine is does not matter here.
func TestPing(t *testing.T) {
	lab, ok := newLab(t, 3)
	if !ok {
		return
	}
	times := EvenRoundTrips(3, 0)
	times[0][1], times[0][2] = 20*time.Millisecond, 60*time.Millisecond
	if err := lab.SetRoundTrips(1, times, Link{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for a, from := range lab.Hosts {
		for b, to := range lab.Hosts {
			if a == b {
				continue
			}
			got, err := from.Ping(ctx, to, 3, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, took := range got {
				if took < times.Between(a+1, b+1) {
					t.Errorf("%d→%d: %s, the link takes %s", a+1, b+1, took, times.Between(a+1, b+1))
				}
			}
			t.Logf("%d→%d: %v", a+1, b+1, got)
		}
	}
	heal := lab.Cut(Rule{From: 3})
	if _, err := lab.Hosts[0].Ping(ctx, lab.Hosts[2], 2, 10*time.Millisecond); !errors.Is(err, ErrNoEcho) {
		t.Errorf("ping over a cut: %v", err)
	}
	heal()
	if err := lab.SetRoundTrips(1, times[:2], Link{}); !errors.Is(err, ErrNoMatrix) {
		t.Errorf("round trips of two hosts with three in a row: %v", err)
	}
}
