package archive

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// breakFile has every write fail until the returned function is called.
func (a *Archive) breakFile(t *testing.T) (mend func()) {
	t.Helper()
	whole := a.file
	broken, err := os.Open(whole.Name()) // for reading only
	must(t, err)
	a.file = broken
	return func() {
		a.file = whole
		must(t, broken.Close())
	}
}

// TestFailedWritesAreRepeated: nothing is lost and nothing is there twice.
func TestFailedWritesAreRepeated(t *testing.T) {
	f := &feed{}
	f.home(fsm.Event{Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: mine, Attempt: 1, Site: "a", RunMs: 9000})
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	c := NewCollector(f, a, NewRecent("a", epoch), zerolog.Nop())
	if err := c.read(t.Context()); !strings.Contains(err.Error(), "stopping") {
		t.Fatal(err)
	}
	f.tell(fsm.Event{
		Kind: fsm.EventHomeRan, Job: mine, Site: "a", QueuedMs: 1000, AssignedMs: -1, StartedMs: 2000,
		RunMs: 9000,
	})
	f.run(theirs, "a", fsm.EventTaskEnded, fsm.EndSucceeded)
	mend := a.breakFile(t)
	for range 2 {
		if err := c.read(t.Context()); !strings.Contains(err.Error(), "write archive") {
			t.Fatal(err)
		}
	}
	place := a.Place()
	mend()
	if err := c.read(t.Context()); !strings.Contains(err.Error(), "stopping") {
		t.Fatal(err)
	}
	got, gaps := lines(t, a)
	if strings.Count(got, "\n") != 2 || len(gaps) > 0 || place.Entry != 0 || a.Place().Entry != 5 {
		t.Errorf("place %v, then %v, gaps %v:\n%s", place, a.Place(), gaps, got)
	}
}

// TestUncutWriteBeforeANewSegment: a write failed in part and could not be cut off at
// once. It is before the next segment begins: what it left would be counted there,
// beside what is written again.
func TestUncutWriteBeforeANewSegment(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	must(t, a.Append([]Attempt{ended(1, time.Second)}, node.EventID{Entry: 1, N: 1}))
	path, size := a.file.Name(), a.segments[0].size
	mend := a.breakFile(t)
	x := ended(2, time.Second)
	if err := a.Append([]Attempt{x}, node.EventID{Entry: 2, N: 1}); err == nil || !a.uncut {
		t.Fatalf("uncut %t after %v", a.uncut, err)
	}
	mend()
	_, err := a.file.WriteAt(appendFrame(nil, appendAttempt(nil, &x)), size) // so much had arrived
	must(t, err)
	c.at = epoch.Add(30 * 24 * time.Hour)
	must(t, a.Tick()) // begins another segment
	must(t, a.Append([]Attempt{x}, node.EventID{Entry: 2, N: 1}))
	must(t, a.Close())
	if info, err := os.Stat(path); err != nil || info.Size() != size {
		t.Errorf("%v bytes, %v; want %d", info.Size(), err, size)
	}
	a = openTest(t, dir, c, nil)
	if jobs, _ := all(t, a, Query{}); jobs != "1 2" {
		t.Errorf("%s", jobs)
	}
}

// TestFullDisk: what was written in part is cut off again.
func TestFullDisk(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	must(t, a.Append([]Attempt{ended(1, time.Second)}, node.EventID{Entry: 1, N: 1}))
	mend := a.breakFile(t)
	if err := a.Append([]Attempt{ended(2, time.Second)}, node.EventID{Entry: 2, N: 1}); err == nil {
		t.Fatal("a write that failed is acknowledged")
	}
	mend()
	if jobs, _ := all(t, a, Query{}); jobs != "1" || a.Place().Entry != 1 {
		t.Errorf("%s, place %v", jobs, a.Place())
	}
	must(t, a.Append([]Attempt{ended(3, time.Second)}, node.EventID{Entry: 3, N: 1}))
	if jobs, _ := all(t, a, Query{}); jobs != "1 3" {
		t.Errorf("%s", jobs)
	}
}
