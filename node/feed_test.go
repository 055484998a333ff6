package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// feedOf is a broker with nothing but a feed.
func feedOf(t *testing.T) (*Broker, *Feed) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	b := &Broker{cfg: Config{Site: "a", Replica: NewReplica()}, ctx: ctx, cancel: cancel}
	b.cfg.Replica.feed = newFeed(100)
	return b, b.cfg.Replica.feed
}

// entry is n events of an entry.
func entry(index uint64, n int) (out []fsm.Event) {
	for range n {
		out = append(out, fsm.Event{Index: index, Kind: fsm.EventJobSubmitted, Job: fsm.JobID{Site: "a", Num: index}})
	}
	return out
}

// applied makes the replica as old as so many entries.
func applied(t *testing.T, b *Broker, n int) {
	t.Helper()
	for range n {
		if _, err := b.cfg.Replica.Apply((&fsm.Batch{Term: 1}).Append(nil)); err != nil {
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
			if !errors.Is(err, ErrEventsLost) {
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
	f.addHome(make([]Event, 2))
	f.add(entry(5, 1))
	f.add(entry(9, 1))
	f.addHome(make([]Event, 1))
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
		id, err := ParseEventID(from)
		if err != nil {
			t.Fatal(err)
		}
		if got := drainEvents(t, b.Events(id, EventFilter{})); got != want {
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
		f.addHome(make([]Event, 1))
		reader := b.Events(AfterEntry(119), EventFilter{})
		if got := drainEvents(t, reader); got != "120.1 120.1.1001" {
			t.Fatalf("read %q", got)
		}
		f.addHome(make([]Event, 1)) // the reader does not hear of it any more
		b.cfg.Replica.feed = newFeed(began)
		f = b.cfg.Replica.feed
		f.add(entry(120, 1)) // from the log
		f.addHome(make([]Event, 1))
		again := b.Events(reader.Place(), EventFilter{})
		if got, want := drainEvents(t, again), fmt.Sprintf("lost 120.1.%d", began+1); got != want {
			t.Errorf("began at %d: %q, want %q", began, got, want)
		}
		if got := drainEvents(t, b.Events(again.Place(), EventFilter{})); got != "" {
			t.Errorf("and then %q", got)
		}
	}
}

func TestFeedTellsOfGaps(t *testing.T) {
	b, f := feedOf(t)
	slow := b.Events(AfterEntry(0), EventFilter{})
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
	f.addHome(make([]Event, 1))
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

func TestEventIDsFromOutside(t *testing.T) {
	for _, s := range []string{"0", "7.1", "7.1.9", fmt.Sprintf("7.%d.9", uint32(math.MaxUint32))} {
		if id, err := ParseEventID(s); err != nil || id.String() != s {
			t.Errorf("%q is read as %q, %v", s, id, err)
		}
	}
	for _, s := range []string{"", ".", "1.", "-1", "1.2.3.4", "1.4294967296", "x", "1e3", strings.Repeat("1", 100)} {
		if id, err := ParseEventID(s); !errors.Is(err, ErrBadCursor) {
			t.Errorf("%.20q is read as %v, %v", s, id, err)
		}
	}
}

// TestEventsOfARunningFederation follows a home job and one that overflows, at
// both brokers.
func TestEventsOfARunningFederation(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	from := b.Feed().Now()
	here, there := a.Events(from, EventFilter{Labels: map[string]string{"k": "v"}}), b.Events(from, EventFilter{Kinds: map[fsm.EventKind]bool{
		fsm.EventJobSubmitted: true, fsm.EventTaskAssigned: true, fsm.EventTaskEnded: true, fsm.EventJobEnded: true,
	}})
	const job = `{"command":["true"],"labels":{"k":"v"}}`
	home := a.accept(t, job)
	err := a.cfg.Replica.Await(t.Context(), func(s *fsm.State) bool { // else it may be given the next one, too
		v, _ := s.Site(a.name)
		return v.Exposed.MilliCPU == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	away := a.accept(t, job)
	a.accept(t, `{"command":["true"]}`)
	a.handler.end(<-a.handler.started, executor.Result{})
	b.handler.end(<-b.handler.started, executor.Result{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	seen := map[string]string{}
	for ends := 0; ends < 2; {
		events, err := here.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			e := &events[i]
			if e.At.IsZero() {
				t.Errorf("%s has no date", e.Kind)
			}
			seen[e.Job.String()] += fmt.Sprintf("%s %s;", e.Kind, e.Durability)
			if e.Kind == fsm.EventJobEnded {
				ends++
			}
		}
	}
	for id, want := range map[fsm.JobID]string{
		home.ID: "job.submitted site;task.assigned site;task.ended site;job.ended site;",
		away.ID: "job.submitted federation;task.assigned federation;task.ended federation;job.ended federation;",
	} {
		if got := strings.ReplaceAll(strings.ReplaceAll(seen[id.String()], "task.started site;", ""), "task.started federation;", ""); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the label lets %v by", seen)
	}
	for {
		events, err := there.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if events[i].Job == home.ID {
				t.Fatalf("%s of a home job at another broker", events[i].Kind)
			}
			if events[i].Job == away.ID && events[i].Kind == fsm.EventJobEnded {
				return
			}
		}
	}
}

// TestHomeJobsMoveReads: what happens to a home job moves no entry, and yet
// wakes a blocking read.
func TestHomeJobsMoveReads(t *testing.T) {
	a := startSites(t, 2)[0]
	answer := a.accept(t, sleepJob)
	id := <-a.handler.started
	entry, home := a.Feed().Moved()
	far := home + 1000 // home moves on below
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	woken := make(chan error, 1)
	go func() { woken <- a.Feed().AwaitMove(ctx, entry+1000, far) }()
	a.handler.end(id, executor.Result{})
	for {
		if err := a.Feed().AwaitMove(ctx, entry+1000, home); err != nil {
			t.Fatal(err)
		}
		j, err := a.Job(ctx, answer.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j.State == "succeeded" {
			break
		}
		_, home = a.Feed().Moved()
	}
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		t.Errorf("a read that waits for much more: %v", err)
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
	f.addHome(make([]Event, 1))
	s := b.Events(EventID{}, EventFilter{Kinds: map[fsm.EventKind]bool{fsm.EventSiteLost: true}})
	for after, want := range map[uint64]string{0: "1.1", 1: ""} {
		l := s.Latest(AfterEntry(after), 10)
		got := ""
		for i := range l.Events {
			got += l.Events[i].ID.String()
		}
		if got != want || !l.Whole || l.Place != f.Now() || l.Since.ID.Entry != after+1 {
			t.Errorf("after %d: %q, whole %v, from %s to %s", after, got, l.Whole, l.Since.ID, l.Place)
		}
	}
	all := b.Events(EventID{}, EventFilter{})
	l := all.Latest(EventID{}, 2)
	if len(l.Events) != 2 || l.Whole || l.Events[0].ID.Entry != 3*maxLook-1 || l.Events[1].ID != f.Now() {
		t.Errorf("%+v", l)
	}
	if l = all.Latest(EventID{}, 3*maxLook+1); !l.Whole || len(l.Events) != 3*maxLook {
		t.Errorf("%d events, whole %v", len(l.Events), l.Whole)
	}
	if l = (&Subscription{replica: NewReplica()}).Latest(EventID{}, 5); !l.Whole || len(l.Events) > 0 || l.Since.Seq != 0 {
		t.Errorf("an empty feed: %+v", l)
	}
}
