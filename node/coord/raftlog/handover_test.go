package raftlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/latency"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
)

func TestFaster(t *testing.T) {
	const ms = time.Millisecond
	voter := func(id string, sync time.Duration) voterDisk {
		return voterDisk{id: raft.ServerID(id), sync: sync, known: true, ready: true}
	}
	behind := func(v voterDisk) voterDisk { v.ready = false; return v }
	silent := voterDisk{id: "x"}
	for name, c := range map[string]struct {
		own    time.Duration
		others []voterDisk
		want   string // "" = nobody
	}{
		"healthy":                           {ms, []voterDisk{voter("b", ms), voter("c", ms)}, ""},
		"slow":                              {100 * ms, []voterDisk{voter("b", 2*ms), voter("c", ms)}, "c"},
		"very slow":                         {time.Second, []voterDisk{voter("b", ms), voter("c", 2*ms)}, "b"},
		"many times slower but quick":       {15 * ms, []voterDisk{voter("b", ms), voter("c", ms)}, ""},
		"slower by a little":                {100 * ms, []voterDisk{voter("b", 30*ms), voter("c", 30*ms)}, ""},
		"all slow":                          {100 * ms, []voterDisk{voter("b", 100*ms), voter("c", 110*ms)}, ""},
		"the quickest is behind":            {100 * ms, []voterDisk{behind(voter("b", ms)), voter("c", 3*ms)}, "c"},
		"all are behind":                    {100 * ms, []voterDisk{behind(voter("b", ms)), behind(voter("c", ms))}, ""},
		"the third is slow, too":            {100 * ms, []voterDisk{voter("b", ms), voter("c", 100*ms)}, ""},
		"the third is away":                 {100 * ms, []voterDisk{voter("b", ms), silent}, ""},
		"two voters wait for both anyway":   {time.Second, []voterDisk{voter("b", ms)}, ""},
		"two of five are slow":              {100 * ms, []voterDisk{voter("b", ms), voter("c", ms), voter("d", 90*ms), silent}, ""},
		"of five, three are quick":          {100 * ms, []voterDisk{voter("b", ms), voter("c", ms), voter("d", 2*ms), silent}, "b"},
		"nothing was measured":              {100 * ms, []voterDisk{silent, silent}, ""},
		"far voters, whose answers take 80": {100 * ms, []voterDisk{voter("b", 80*ms), voter("c", 80*ms)}, ""},
	} {
		successor, ok := chooseFasterVoter(c.own, c.others)
		if ok != (c.want != "") || string(successor.id) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, successor.id, ok, c.want)
		}
	}
}

// TestLatencyKnowsVerySlowDisks: one write at a time of up to timing.stall, beyond which
// the member hands over for another reason, is known at each look, as is what a follower
// takes for so few entries. A leader with 2.5 s a sync (WAN: 4 s) was never compared with its
// voters for long enough, and led on.
func TestLatencyKnowsVerySlowDisks(t *testing.T) {
	for _, p := range []Profile{LAN, WAN} {
		for took := time.Second; took <= timingOf(p).stall; took += time.Second / 2 {
			var own, other latency.Recent
			now := time.Unix(1_700_000_000, 0)
			for range latency.Least {
				now = now.Add(took)
				own.Add(now, took)
				other.Add(now, time.Millisecond)
			}
			for since := time.Duration(0); since < took; since += 100 * time.Millisecond {
				_, ok := own.Median(now.Add(since), since)
				_, too := other.Median(now.Add(since))
				if !ok || !too {
					t.Errorf("%v a sync, %v after one: known are the leader's %v, the voter's %v", took, since, ok, too)
					break
				}
			}
		}
	}
}

// delayed is a disk whose writes of entries take longer, on request.
type delayed struct {
	store.Disk
	by *atomic.Int64
}

func (d delayed) StoreLogs(logs []*raft.Log) error {
	<-time.After(time.Duration(d.by.Load()))
	return d.Disk.StoreLogs(logs)
}

// slowDisks is a cluster of three whose disks can be made slow.
type slowDisks struct {
	*cluster
	by     map[string]*atomic.Int64
	handed chan string // reasons of handovers
}

func newSlowDisks(t *testing.T) *slowDisks {
	t.Helper()
	s := &slowDisks{cluster: newCluster(t), by: map[string]*atomic.Int64{}, handed: make(chan string, 16)}
	s.time.slow = 300 * time.Millisecond
	// Nothing but the disks moves the leadership: no member misses a heartbeat because the machine is busy.
	s.time.heartbeat, s.time.election, s.time.lease = 2*time.Second, 2*time.Second, time.Second
	s.hooks.HandOver = func(reason string) { s.handed <- reason }
	for _, site := range []string{"a", "b", "c"} {
		by := &atomic.Int64{}
		s.by[site] = by
		s.cluster.disk = func(d store.Disk) store.Disk { return delayed{d, by} }
		s.Open(t, site, coordtest.NewMachine())
	}
	return s
}

// busy has the members sync entries until the function returned is called.
func (s *slowDisks) busy(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, l := range s.running() {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = l.Propose(ctx, coordtest.Registration(l.cfg.Site)) // whoever leads
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// A leader whose disk is slow beside the voters' hands over, and the one that takes
// over keeps the leadership, however slow the first one stays.
func TestSlowDiskHandsOver(t *testing.T) {
	for _, by := range []time.Duration{100 * time.Millisecond, time.Second} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			s := newSlowDisks(t)
			defer s.busy(t)()
			old := s.leader(t)
			s.by[old.cfg.Site].Store(int64(by))
			select {
			case why := <-s.handed:
				if why != "slow_disk" {
					t.Errorf("handed over for %q", why)
				}
			case <-time.After(coordtest.Patience):
				t.Fatal("a leader with a slow disk keeps the leadership")
			}
			now := s.awaitOther(t, old)
			select {
			case why := <-s.handed:
				t.Errorf("%s hands over, too, for %q", now.cfg.Site, why)
			case <-time.After(2 * time.Second):
			}
			if l := s.leader(t); l != now {
				t.Errorf("%s took over, now %s leads", now.cfg.Site, l.cfg.Site)
			}
			if !old.describeSelf(joinRequest{}).Slow {
				t.Error("who has handed over would take the leadership back")
			}
		})
	}
}

// TestSlowDiskAsksTheNextVoter: the voter with the quickest disk would not lead, for it
// has handed over itself a moment ago, so the next one is asked at once.
func TestSlowDiskAsksTheNextVoter(t *testing.T) {
	s := newSlowDisks(t)
	defer s.busy(t)()
	old := s.leader(t)
	var refuses, takes *Log
	for _, l := range s.running() {
		switch {
		case l == old:
		case refuses == nil:
			refuses = l
		default:
			takes = l
		}
	}
	refuses.Rest()
	s.by[takes.cfg.Site].Store(int64(5 * time.Millisecond)) // not the quickest
	s.by[old.cfg.Site].Store(int64(200 * time.Millisecond))
	if now := s.awaitOther(t, old); now != takes {
		t.Errorf("%s leads, %s was to", now.cfg.Site, takes.cfg.Site)
	}
}

func (s *slowDisks) awaitOther(t *testing.T, old *Log) *Log {
	t.Helper()
	for end := time.After(coordtest.Patience); ; {
		if l := s.leader(t); l != old {
			return l
		}
		select {
		case <-end:
			t.Fatalf("%s leads on", old.cfg.Site)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestEquallySlowDisksHandNothingOver(t *testing.T) {
	s := newSlowDisks(t)
	defer s.busy(t)()
	for _, by := range s.by {
		by.Store(int64(60 * time.Millisecond))
	}
	select {
	case why := <-s.handed:
		t.Errorf("handed over for %q", why)
	case <-time.After(3 * time.Second):
	}
}
