package archive

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// feed is a broker of site a whose events a test tells.
type feed struct {
	events []node.Event
	floor  node.EventID // events at or before it are lost
	first  uint64       // home events are numbered after it
	asked  int
}

var _ Source = (*feed)(nil)

func (f *feed) Site() string { return "a" }
func (f *feed) Ready() error { return nil }
func (f *feed) HomeNumbers() (first, newest uint64) {
	return f.first, f.first + uint64(len(f.events))
}

func (f *feed) Ledger() fsm.LedgerView {
	return fsm.LedgerView{Index: 3, Unit: "u", Sites: []fsm.AccountView{{Site: "a", Contribution: "5", Utility: "7", Priority: "-2"}}}
}

func (f *feed) JobFacts(_ context.Context, ids []command.JobID) map[command.JobID]node.JobFacts {
	out := map[command.JobID]node.JobFacts{}
	for _, id := range ids {
		f.asked++
		out[id] = node.JobFacts{Name: "n" + id.String(), SubmittedAt: epoch}
	}
	return out
}

func (f *feed) Subscribe(from node.EventID) Reader { return &feedReader{feed: f, place: from} }

// feedReader reads to the end and then says that the broker stops.
type feedReader struct {
	feed  *feed
	place node.EventID
	at    int
}

func (r *feedReader) Place() node.EventID { return r.place }

func (r *feedReader) Next(context.Context) ([]node.Event, error) {
	if r.at == 0 && isNew(r.place, r.feed.floor) {
		r.place = r.feed.floor
		r.at = len(r.feed.events) // those before are gone
		for i, e := range r.feed.events {
			if isNew(r.place, e.ID) {
				r.at = i
				break
			}
		}
		return nil, node.ErrEventsLost
	}
	if r.at == len(r.feed.events) {
		return nil, node.ErrStopping
	}
	e := r.feed.events[r.at]
	r.at++
	r.place = e.ID
	return []node.Event{e}, nil
}

// tell appends an event of the log, ten seconds of log time after the last.
func (f *feed) tell(e fsm.Event) {
	n := uint64(len(f.events) + 1)
	e.Index, e.Time, e.Count = n, int64(n)*10_000, max(1, e.Count)
	f.events = append(f.events, node.Event{
		Event: e, ID: node.EventID{Entry: n, N: 1}, At: epoch.Add(time.Duration(n) * 10 * time.Second), Seq: n,
		Durability: node.DurableFederation,
	})
}

// home appends an event of a home job.
func (f *feed) home(e fsm.Event) {
	f.tell(e)
	x := &f.events[len(f.events)-1]
	x.Time, x.QueuedMs, x.AssignedMs, x.StartedMs = -1, -1, -1, -1
	x.ID = node.EventID{Entry: 0, N: 0, Home: f.first + x.ID.Entry}
}

// collect reads the whole feed into an archive and Recent.
func collect(t *testing.T, f *feed, a *Archive) *Recent {
	t.Helper()
	r := NewRecent("a", epoch)
	c := NewCollector(f, a, r, zerolog.New(zerolog.NewTestWriter(t)))
	c.run(t.Context())
	return r
}

func lines(t *testing.T, a *Archive) (string, []Gap) {
	t.Helper()
	var out strings.Builder
	gaps, err := a.Scan(t.Context(), Query{}, func(x *Attempt) error {
		wait, _ := x.Wait()
		fmt.Fprintf(&out, "%s/%d.%d at %q %q final %t home %t wait %s run %s charged %d name %s log %d\n",
			x.Job, x.Task, x.Number, x.Site, x.Outcome, x.Final, x.Home, wait, x.Run(), x.ChargedMs, x.Name,
			x.LogMs(x.Started))
		return nil
	})
	must(t, err)
	return out.String(), gaps
}

var (
	mine   = command.JobID{Site: "a", Num: 1}
	theirs = command.JobID{Site: "b", Num: 2}
)

// run tells of one attempt from its assignment to its end.
func (f *feed) run(job command.JobID, at string, kind fsm.EventKind, end fsm.Ending) {
	f.tell(fsm.Event{
		Kind: fsm.EventTaskAssigned, Job: job, Attempt: 1, Site: at, QueuedMs: 1000, AssignedMs: 2000,
		StartedMs: -1,
	})
	f.tell(fsm.Event{
		Kind: fsm.EventTaskStarted, Job: job, Attempt: 1, Site: at, QueuedMs: 1000, AssignedMs: 2000,
		StartedMs: 3000,
	})
	f.tell(fsm.Event{
		Kind: kind, End: end, Job: job, Attempt: 1, Site: at, QueuedMs: 1000, AssignedMs: 2000, StartedMs: 3000,
		RunMs: 4000,
		Need:  command.Resources{MilliCPU: 1000},
	})
}

// TestAnAttemptInDoubtIsNotEnded: it may get its task back, and would be told of twice.
func TestAnAttemptInDoubtIsNotEnded(t *testing.T) {
	var b openBook
	for i, e := range []fsm.Event{
		{Kind: fsm.EventTaskAssigned, Attempt: 1},
		{Kind: fsm.EventTaskRequeued, End: fsm.EndSuspected, Attempt: 1},
		{Kind: fsm.EventTaskResumed, Attempt: 1},
		{Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Attempt: 1, RunMs: 5},
	} {
		e.Job, e.Site = mine, "b"
		if a, ended := b.applyEvent(&node.Event{Event: e}, true); ended != (i == 3) || ended && a.ChargedMs != 5 {
			t.Errorf("after %s: ended %v, %+v", e.Kind, ended, a)
		}
	}
}

// TestADeliveredAttemptIsToldOnce: it ended before its outputs were fetched, with the charge that it had then.
func TestADeliveredAttemptIsToldOnce(t *testing.T) {
	var b openBook
	at := time.Unix(1000, 0)
	for i, e := range []fsm.Event{
		{Kind: fsm.EventTaskAssigned, Time: 1000, Attempt: 1},
		{Kind: fsm.EventTaskDelivering, Time: 9000, End: fsm.EndSucceeded, Attempt: 1, StartedMs: 3000, RunMs: 4000},
		{Kind: fsm.EventTaskRequeued, Time: 60_000, End: fsm.EndLost, Attempt: 1, StartedMs: 3000, RunMs: 4000},
	} {
		e.Job, e.Site, e.Delivered = mine, "b", i == 2
		a, ended := b.applyEvent(&node.Event{Event: e, At: at.Add(time.Duration(e.Time) * time.Millisecond)}, true)
		if ended != (i == 2) || ended && (a.ChargedMs != 4000 || a.EndedMs != 7000 ||
			!a.Ended.Equal(at.Add(7*time.Second))) {
			t.Errorf("after %s: ended %v, %+v", e.Kind, ended, a)
		}
	}
}

func TestTheArchiveTakesItsScope(t *testing.T) {
	f := &feed{}
	f.run(mine, "b", fsm.EventTaskRequeued, fsm.EndLost)
	f.run(theirs, "a", fsm.EventTaskEnded, fsm.EndFailed)
	f.run(theirs, "c", fsm.EventTaskEnded, fsm.EndSucceeded)
	f.tell(fsm.Event{
		Kind: fsm.EventTaskEnded, End: fsm.EndCancelled, Job: mine, Task: 5, Count: 9, QueuedMs: 1000,
		AssignedMs: -1, StartedMs: -1,
	})
	f.tell(fsm.Event{
		Kind: fsm.EventHomeRan, Job: theirs, Site: "b", QueuedMs: 1000, AssignedMs: -1, StartedMs: 2000,
		RunMs: 3000,
	})
	const (
		lost      = "a.1/0.1 at \"b\" \"lost\" final false home false wait 2s run 27s charged 4000 name na.1 log 3000\n"
		failed    = "b.2/0.1 at \"a\" \"failed\" final true home false wait 2s run 57s charged 4000 name nb.2 log 3000\n"
		others    = "b.2/0.1 at \"c\" \"succeeded\" final true home false wait 2s run 1m27s charged 4000 name nb.2 log 3000\n"
		cancelled = "a.1/5.0 at \"\" \"cancelled\" final true home false wait 0s run 0s charged 0 name na.1 log -1\n"
		ran       = "b.2/0.0 at \"b\" \"\" final true home true wait 1s run 3s charged 3000 name nb.2 log 2000\n"
	)
	for scope, want := range map[Scope]string{
		Own: lost + failed + cancelled,
		All: lost + failed + others + cancelled + ran,
	} {
		f.asked = 0
		a := openTest(t, t.TempDir(), &clock{epoch}, func(c *Config) { c.Scope = scope })
		collect(t, f, a)
		if got, gaps := lines(t, a); got != want || len(gaps) > 0 || f.asked != 2 {
			t.Errorf("%s, %d jobs asked for, gaps %v:\n%swant:\n%s", scope, f.asked, gaps, got, want)
		}
	}
}

// TestHomeRunsAreArchivedOnce: by their own event, or else by the log's.
func TestHomeRunsAreArchivedOnce(t *testing.T) {
	f := &feed{}
	f.home(fsm.Event{Kind: fsm.EventJobSubmitted, Job: mine, Count: 2})
	f.home(fsm.Event{Kind: fsm.EventTaskAssigned, Job: mine, Attempt: 1, Site: "a"})
	f.home(fsm.Event{Kind: fsm.EventTaskStarted, Job: mine, Attempt: 1, Site: "a"})
	f.home(fsm.Event{Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: mine, Attempt: 1, Site: "a", RunMs: 9000})
	f.tell(fsm.Event{
		Kind: fsm.EventHomeRan, Job: mine, Site: "a", QueuedMs: 1000, AssignedMs: -1, StartedMs: 2000,
		RunMs: 9000,
	})
	f.tell(fsm.Event{
		Kind: fsm.EventHomeRan, Job: mine, Task: 1, Site: "a", QueuedMs: 1000, AssignedMs: -1,
		StartedMs: 2000, RunMs: 5000,
	})
	const want = "a.1/0.1 at \"a\" \"succeeded\" final true home true wait 21s run 9s charged 9000 name na.1 log -1\n" +
		"a.1/1.0 at \"a\" \"\" final true home true wait 1s run 5s charged 5000 name na.1 log 2000\n"
	dir := t.TempDir()
	for range 2 { // the second time the same log is read again
		a := openTest(t, dir, &clock{epoch}, nil)
		collect(t, f, a)
		if got, _ := lines(t, a); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		must(t, a.Close())
	}
}

// Found by review: after the clock was set back, home runs were taken for ones
// that the archive had, until the clock was where it had been.
func TestHomeRunsAfterTheClockWasSetBack(t *testing.T) {
	dir := t.TempDir()
	for i, first := range []uint64{5000, 1000, 4999, 5100} {
		f := &feed{first: first}
		f.home(fsm.Event{Kind: fsm.EventJobSubmitted, Job: mine})
		f.home(fsm.Event{Kind: fsm.EventTaskAssigned, Job: mine, Attempt: 1, Site: "a"})
		f.home(fsm.Event{Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: mine, Attempt: 1, Site: "a", RunMs: 9000})
		a := openTest(t, dir, &clock{epoch}, nil)
		collect(t, f, a)
		if got, _ := lines(t, a); strings.Count(got, "\n") != i+1 {
			t.Errorf("after start %d:\n%s", i+1, got)
		}
		must(t, a.Close())
	}
}

// TestHomeRetries: an attempt that failed is charged, too, and a task that is
// cancelled while it waits for the next one has no second record of it.
func TestHomeRetries(t *testing.T) {
	f := &feed{}
	f.home(fsm.Event{Kind: fsm.EventJobSubmitted, Job: mine})
	f.home(fsm.Event{Kind: fsm.EventTaskAssigned, Job: mine, Attempt: 1, Site: "a"})
	f.home(fsm.Event{Kind: fsm.EventTaskRequeued, End: fsm.EndFailed, Job: mine, Attempt: 1, Site: "a", RunMs: 9000})
	f.tell(fsm.Event{
		Kind: fsm.EventHomeRan, Job: mine, Site: "a", QueuedMs: 1000, AssignedMs: -1, StartedMs: 2000,
		RunMs: 9000,
	})
	f.home(fsm.Event{Kind: fsm.EventTaskEnded, End: fsm.EndCancelled, Job: mine, Attempt: 1, Site: "a"})
	// of no length
	f.tell(fsm.Event{Kind: fsm.EventHomeRan, Job: mine, Site: "a", QueuedMs: 1000, AssignedMs: -1, StartedMs: 2000})
	const want = "a.1/0.1 at \"a\" \"failed\" final false home true wait 11s run 9s charged 9000 name na.1 log -1\n" +
		"a.1/0.0 at \"\" \"cancelled\" final true home true wait 0s run 0s charged 0 name na.1 log -1\n"
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	collect(t, f, a)
	if got, _ := lines(t, a); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestRestartsAndGaps: what the archive has is not taken twice, what the feed
// does not hold any more is a gap.
func TestRestartsAndGaps(t *testing.T) {
	f, dir := &feed{}, t.TempDir()
	f.run(mine, "b", fsm.EventTaskEnded, fsm.EndSucceeded)
	a := openTest(t, dir, &clock{epoch}, nil)
	collect(t, f, a)
	must(t, a.Close())
	f.run(theirs, "a", fsm.EventTaskEnded, fsm.EndSucceeded)
	f.floor = node.AfterEntry(2) // older than what is archived: nothing is missing
	a = openTest(t, dir, &clock{epoch}, nil)
	r := collect(t, f, a)
	got, gaps := lines(t, a)
	if strings.Count(got, "\n") != 2 || len(gaps) != 0 {
		t.Errorf("gaps %v:\n%s", gaps, got)
	}
	if n := len(r.Attempts(time.Time{}, "", 10)); n != 2 { // also what is archived already
		t.Errorf("recent: %d", n)
	}
	must(t, a.Close())
	f.run(mine, "b", fsm.EventTaskEnded, fsm.EndSucceeded)
	f.floor = node.AfterEntry(8)
	a = openTest(t, dir, &clock{epoch}, nil)
	collect(t, f, a)
	got, gaps = lines(t, a)
	if strings.Count(got, "\n") != 3 || len(gaps) != 1 || gaps[0].From != 6 || gaps[0].To != 8 || gaps[0].Since.IsZero() {
		t.Errorf("gaps %+v:\n%s", gaps, got)
	}
}

// TestRecentGoesOnFromTheArchive: after a restart Recent shows what was archived
// and the log does not tell again, in the order of the ends, and nothing twice.
func TestRecentGoesOnFromTheArchive(t *testing.T) {
	f, dir := &feed{first: 100}, t.TempDir()
	f.home(fsm.Event{Kind: fsm.EventJobSubmitted, Job: mine})
	f.home(fsm.Event{Kind: fsm.EventTaskAssigned, Job: mine, Attempt: 1, Site: "a"})
	f.home(fsm.Event{Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: mine, Attempt: 1, Site: "a", RunMs: 9000})
	f.run(theirs, "a", fsm.EventTaskEnded, fsm.EndFailed)                              // entries 4 to 6
	f.run(command.JobID{Site: "b", Num: 3}, "a", fsm.EventTaskEnded, fsm.EndSucceeded) // 7 to 9
	f.home(fsm.Event{Kind: fsm.EventTaskAssigned, Job: command.JobID{Site: "a", Num: 4}, Attempt: 1, Site: "a"})
	f.home(fsm.Event{
		Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: command.JobID{Site: "a", Num: 4}, Attempt: 1,
		Site: "a", RunMs: 9000,
	})
	f.run(theirs, "c", fsm.EventTaskEnded, fsm.EndSucceeded) // of others: not archived
	a := openTest(t, dir, &clock{epoch}, nil)
	collect(t, f, a)
	must(t, a.Close())

	again := &feed{first: 5000}
	for _, e := range f.events {
		if e.ID.Home == 0 { // what happened at home is not told again
			again.events = append(again.events, e)
		}
	}
	again.floor = node.AfterEntry(6)
	a = openTest(t, dir, &clock{epoch}, nil)
	r := collect(t, again, a)
	var got []string
	for _, x := range r.Attempts(epoch, "", 10) {
		got = append(got, fmt.Sprintf("%s at %s %s %s", x.Job, x.Site, x.Outcome, x.Name))
	}
	want := "b.2 at c succeeded , a.4 at a succeeded , b.3 at a succeeded , b.2 at a failed , a.1 at a succeeded "
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if list := r.EarlierOf(mine, 0, 10, 10); len(list) != 1 {
		t.Errorf("of one job: %+v", list)
	}
}

func TestRecentShowsWhatRuns(t *testing.T) {
	r := NewRecent("a", epoch)
	f := &feed{}
	f.run(mine, "b", fsm.EventTaskEnded, fsm.EndSucceeded)
	f.run(theirs, "a", fsm.EventTaskAssigned, 0)
	var b openBook
	now := time.Now()
	for i := range f.events {
		e := &f.events[i]
		e.At = now.Add(time.Duration(i-len(f.events)) * time.Second)
		x, over := b.applyEvent(e, true)
		r.applyEvent(e, &x, over)
	}
	got := r.Attempts(now.Add(-time.Hour), "", 10)
	if len(got) != 2 || got[0].Job != theirs || !got[0].Ended.IsZero() || got[1].Job != mine ||
		got[1].Outcome != fsm.EndSucceeded {
		t.Errorf("%+v", got)
	}
	if got := r.Attempts(now.Add(-time.Hour), "b", 10); len(got) != 1 || got[0].Job != mine {
		t.Errorf("at b: %+v", got)
	}
	if got := r.Attempts(now.Add(-time.Hour), "", 1); len(got) != 1 {
		t.Errorf("limit 1: %d", len(got))
	}
	r.forgetLog()
	if got := r.Attempts(now.Add(-time.Hour), "a", 10); len(got) != 0 {
		t.Errorf("after a snapshot: %+v", got)
	}
}

func TestSamplesAreBounded(t *testing.T) {
	r := NewRecent("a", epoch)
	l := fsm.LedgerView{Index: 1, Unit: "u"}
	for i := range 100 {
		l.Sites = append(l.Sites, fsm.AccountView{Site: fmt.Sprint(i), Contribution: "340282366920938463463374607431768211455", Utility: "1", Priority: "-1"})
	}
	for i := range 5000 {
		r.sample(epoch.Add(time.Duration(i)*time.Minute), l)
	}
	got := r.Samples(epoch)
	if len(got) != 1441 || r.held > maxStandings || got[0].Sites[0].Contribution < 1e38 {
		t.Errorf("%d samples, %d standings", len(got), r.held)
	}
	if n := len(r.Samples(got[1440].At)); n != 1 {
		t.Errorf("since the last: %d", n)
	}
}

// TestCollectorStops: at any time, also before it starts.
func TestCollectorStops(t *testing.T) {
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	c := NewCollector(&feed{}, a, NewRecent("a", epoch), zerolog.Nop())
	c.Stop()
	c.Start()
	c.Stop()
	c.Stop()
}

// TestHomeRunsBeyondTheBookAreKeptOnce: a site that runs more at home than the archive
// remembers, before the log tells of any of it, had the rest twice.
func TestHomeRunsBeyondTheBookAreKeptOnce(t *testing.T) {
	const runs = maxOpenHome + 100
	f := &feed{}
	for i := range runs {
		f.home(fsm.Event{
			Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: mine, Task: uint32(i), Attempt: 1,
			Site: "a", RunMs: 4,
		})
	}
	for i := range runs {
		f.tell(fsm.Event{Kind: fsm.EventHomeRan, Job: mine, Task: uint32(i), Site: "a", RunMs: 4})
	}
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	c := NewCollector(f, a, NewRecent("a", epoch), zerolog.Nop())
	for i := 0; i < len(f.events); i += fewEvents {
		batch := f.events[i:min(i+fewEvents, len(f.events))]
		must(t, c.storeBatch(t.Context(), batch, batch[len(batch)-1].ID))
	}
	times := map[uint32]int{}
	_, err := a.Scan(t.Context(), Query{}, func(x *Attempt) error {
		times[x.Task]++
		return nil
	})
	must(t, err)
	for i := range uint32(runs) {
		if times[i] != 1 {
			t.Fatalf("run %d is archived %d times", i, times[i])
		}
	}
}
