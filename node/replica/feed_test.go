package replica

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// testFeed is a replica and what its broker would tell of the log's replay.
type testFeed struct {
	*Replica
	current chan struct{}
}

// Events subscribes as a broker does.
func (f *testFeed) Events(from node.EventID, filter node.EventFilter) *Subscription {
	return f.Replica.Events(from, filter, nil).Until(nil, f.current)
}

// feedOf is a replica with an empty feed.
func feedOf(t *testing.T) (*testFeed, *Feed) {
	t.Helper()
	b := &testFeed{Replica: NewReplica()}
	b.feed = newFeed(100)
	return b, b.feed
}

// entry is n events of an entry.
func entry(index uint64, n int) (out []fsm.Event) {
	for range n {
		out = append(out, fsm.Event{Index: index, Kind: fsm.EventJobSubmitted, Job: command.JobID{Site: "a", Num: index}})
	}
	return out
}

// applied makes the replica as old as so many entries.
func applied(t *testing.T, b *testFeed, n int) {
	t.Helper()
	for range n {
		if _, err := b.Apply((&command.Batch{Term: 1}).Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// drain reads what is there, as the ids of the events.
func drainEvents(t *testing.T, s *Subscription) string {
	t.Helper()
	var ids []string
	for {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		events, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return strings.Join(ids, " ")
		}
		if err != nil {
			ids = append(ids, "lost")
			if !errors.Is(err, node.ErrEventsLost) {
				t.Fatal(err)
			}
		}
		for i := range events {
			ids = append(ids, events[i].ID.String())
		}
	}
}

func TestFeedResumesAtAnyPlace(t *testing.T) {
	b, f := feedOf(t)
	applied(t, b, 9)
	f.add(entry(3, 2))
	f.AddHome(make([]node.Event, 2))
	f.add(entry(5, 1))
	f.add(entry(9, 1))
	f.AddHome(make([]node.Event, 1))
	for from, want := range map[string]string{
		"0":                                 "3.1 3.2 3.2.101 3.2.102 5.1 9.1 9.1.103",
		"3.1":                               "3.2 3.2.101 3.2.102 5.1 9.1 9.1.103",
		"3.2.101":                           "3.2.102 5.1 9.1 9.1.103",
		"3.2.100":                           "3.2.101 3.2.102 5.1 9.1 9.1.103",      // before the first
		"3.2.7":                             "lost 3.2.101 3.2.102 5.1 9.1 9.1.103", // of an earlier process: what came after it is gone
		"5.1.99":                            "lost 9.1 9.1.103",
		"3.2.104":                           "lost 3.2.101 3.2.102 5.1 9.1 9.1.103", // the same, before the clock was set back
		"3":                                 "3.2.101 3.2.102 5.1 9.1 9.1.103",      // all of the entry, home events are not left out
		"4":                                 "3.2.101 3.2.102 5.1 9.1 9.1.103",
		"5.1":                               "9.1 9.1.103",
		"9":                                 "9.1.103",
		"9.1.103":                           "",
		"9.7":                               "9.1.103",
		"12":                                "lost", // ahead of this broker
		"18446744073709551615.4294967295.1": "lost",
	} {
		id, err := node.ParseEventID(from)
		if err != nil {
			t.Fatal(err)
		}
		if got := drainEvents(t, b.Events(id, node.EventFilter{})); got != want {
			t.Errorf("from %s: %q, want %q", from, got, want)
		}
	}
}

// Found by review: a reader that went on over a restart of the broker was not
// told that it had missed home events.
func TestHomeEventsMissedOverARestart(t *testing.T) {
	for _, began := range []uint64{5000, 500} { // the clock goes on, or was set back
		b, f := feedOf(t)
		applied(t, b, 120)
		f.first, f.home = 1000, 1000
		f.add(entry(120, 1))
		f.AddHome(make([]node.Event, 1))
		reader := b.Events(node.AfterEntry(119), node.EventFilter{})
		if got := drainEvents(t, reader); got != "120.1 120.1.1001" {
			t.Fatalf("read %q", got)
		}
		f.AddHome(make([]node.Event, 1)) // the reader does not hear of it any more
		b.feed = newFeed(began)
		f = b.feed
		f.add(entry(120, 1)) // from the log
		f.AddHome(make([]node.Event, 1))
		again := b.Events(reader.Place(), node.EventFilter{})
		if got, want := drainEvents(t, again), fmt.Sprintf("lost 120.1.%d", began+1); got != want {
			t.Errorf("began at %d: %q, want %q", began, got, want)
		}
		if got := drainEvents(t, b.Events(again.Place(), node.EventFilter{})); got != "" {
			t.Errorf("and then %q", got)
		}
	}
}

func TestFeedTellsOfGaps(t *testing.T) {
	b, f := feedOf(t)
	slow := b.Events(node.AfterEntry(0), node.EventFilter{})
	for i := uint64(1); i <= maxFeed/8+2; i++ {
		f.add(entry(i, 8))
	}
	applied(t, b, maxFeed/8+2)
	got := drainEvents(t, slow)
	if !strings.HasPrefix(got, "lost 3.1 3.2") || strings.Count(got, " ") != maxFeed {
		t.Errorf("a slow reader got %.40s… (%d)", got, strings.Count(got, " "))
	}
	f.reset(20_000)
	if got := drainEvents(t, slow); got != "lost" {
		t.Errorf("after a snapshot: %q", got)
	}
	f.AddHome(make([]node.Event, 1))
	f.add(entry(20_001, 1))
	applied(t, b, 20_001-maxFeed/8-2)
	want := fmt.Sprintf("20000.%d.101 20001.1", uint32(math.MaxUint32))
	if got := drainEvents(t, slow); got != want {
		t.Errorf("after the snapshot: %q, want %q", got, want)
	}
	if moved, _ := f.Moved(); moved != 20_001 {
		t.Errorf("moved at %d", moved)
	}
}

// TestLatestEvents are found by a filter as far back as the feed is held.
func TestLatestEvents(t *testing.T) {
	b, f := feedOf(t)
	rare := entry(1, 1)
	rare[0].Kind = fsm.EventSiteLost
	f.add(rare)
	for i := uint64(2); i < 3*maxLook; i++ {
		f.add(entry(i, 1))
	}
	f.AddHome(make([]node.Event, 1))
	s := b.Events(node.EventID{}, node.EventFilter{Kinds: map[fsm.EventKind]bool{fsm.EventSiteLost: true}})
	for after, want := range map[uint64]string{0: "1.1", 1: ""} {
		l := s.Latest(node.AfterEntry(after), 10)
		got := ""
		for i := range l.Events {
			got += l.Events[i].ID.String()
		}
		if got != want || !l.Whole || l.Place != f.Now() || l.Since.ID.Entry != after+1 {
			t.Errorf("after %d: %q, whole %v, from %s to %s", after, got, l.Whole, l.Since.ID, l.Place)
		}
	}
	all := b.Events(node.EventID{}, node.EventFilter{})
	l := all.Latest(node.EventID{}, 2)
	if len(l.Events) != 2 || l.Whole || l.Events[0].ID.Entry != 3*maxLook-1 || l.Events[1].ID != f.Now() {
		t.Errorf("%+v", l)
	}
	if l = all.Latest(node.EventID{}, 3*maxLook+1); !l.Whole || len(l.Events) != 3*maxLook {
		t.Errorf("%d events, whole %v", len(l.Events), l.Whole)
	}
	if l = (&Subscription{replica: NewReplica()}).Latest(node.EventID{}, 5); !l.Whole || len(l.Events) > 0 ||
		l.Since.Seq != 0 {
		t.Errorf("an empty feed: %+v", l)
	}
}
