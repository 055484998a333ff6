package results

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/record"
)

// TestResultsOutliveTheBroker: what was kept is there in its next life, whole, and pinned.
func TestResultsOutliveTheBroker(t *testing.T) {
	r := newRig(t)
	want := []node.TaskResult{r.result(0, 1, "a"), r.result(3, 2, "b"), r.result(1_000_000, 1, "c")}
	for _, i := range []int{2, 0, 1} {
		r.keep(7, want[i])
	}
	r.put([]byte("named by nobody"))
	for range 2 {
		if got := r.list(7); !slices.Equal(got, want) {
			t.Fatalf("listed %+v", got)
		}
		if n := r.left(); n != 6 {
			t.Fatalf("%d blobs are left of six", n)
		}
		if broken := r.restart(); broken != 0 {
			t.Fatalf("%d are broken", broken)
		}
	}
	for h, yes := range map[files.Hash]bool{
		want[0].Manifest.Hash: true, files.HashOf([]byte(big("a"))): true, files.HashOf([]byte("hi")): false,
	} {
		if user, got, err := r.Names(7, h); got != yes || user != "ann" || err != nil {
			t.Errorf("%s: %t of %q, %v", h, got, user, err)
		}
	}
	if _, _, found := r.List(8, 0, 1); found {
		t.Error("an unknown job has results")
	}
}

// TestLaterResultCounts: one attempt of a task counts, and what the one before had left goes.
func TestLaterResultCounts(t *testing.T) {
	r := newRig(t)
	first, second := r.result(0, 1, "first"), r.result(0, 2, "second")
	for _, next := range []node.TaskResult{first, first, second} {
		r.keep(1, next)
		if !r.Has(1, next) {
			t.Error("it is not what is kept")
		}
	}
	if got := r.list(1); !slices.Equal(got, []node.TaskResult{second}) || r.Has(1, first) {
		t.Errorf("kept %+v", got)
	}
	if n := r.left(); n != 2 {
		t.Errorf("%d blobs are left of two", n)
	}
	if _, yes, _ := r.Names(1, first.Manifest.Hash); yes {
		t.Error("the first one's manifest is still named")
	}
}

// TestOnlyWhatIsWholeIsKept: a result of which something is missing, or whose manifest is none, is not.
func TestOnlyWhatIsWholeIsKept(t *testing.T) {
	r := newRig(t)
	gone := files.BlobOf([]byte(big("gone")))
	hole := r.put(encoded(r, files.Entry{Path: "x", Size: gone.Size, Hash: gone.Hash}))
	whole := r.result(1, 1, "whole")
	for name, m := range map[string]files.Blob{"no manifest": gone, "a blob is missing": hole} {
		err := r.KeepAll([]Result{{1, node.TaskResult{Manifest: m, Attempt: 1}}, {1, whole}})
		if !errors.Is(err, ErrNotWhole) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := r.Keep(1, node.TaskResult{Manifest: r.put([]byte("junk")), Attempt: 1})
	if !errors.Is(err, files.ErrManifest) {
		t.Errorf("junk: %v", err)
	}
	r.restart()
	if got := r.list(1); !slices.Equal(got, []node.TaskResult{whole}) {
		t.Errorf("kept %+v, want what is whole", got)
	}
}

// TestResultsGoAfterTheirTime: those of an ended job stay until somebody drops them; those of attempts that do not
// count go with the job's end.
func TestResultsGoAfterTheirTime(t *testing.T) {
	r := newRig(t)
	r.keep(1, r.result(0, 1, "counts"))
	r.keep(1, r.result(1, 1, "of an earlier attempt"))
	r.keep(1, r.result(2, 5, "of nobody knows which"))
	r.keep(2, r.result(0, 1, "other"))
	if err := r.End(1, Shape{3, "5,7-8"}, func(task uint32) uint32 { return []uint32{1, 2, 0}[task] }); err != nil {
		t.Fatal(err)
	}
	ended := r.now
	for range 2 {
		if n := r.left(); n != 6 {
			t.Fatalf("%d blobs are left of six", n)
		}
		if got := r.list(1); len(got) != 2 || got[0].Task != 0 || got[1].Task != 2 {
			t.Fatalf("left of the ended job: %+v", got)
		}
		if got := r.Unended(); !slices.Equal(got, []uint64{2}) {
			t.Fatalf("not ended: %v", got)
		}
		if s, known := r.ShapeOf(1); !known || s != (Shape{3, "5,7-8"}) {
			t.Fatalf("its tasks: %+v", s)
		}
		before, after := r.Ended(ended), r.Ended(ended.Add(time.Second))
		if len(before) != 0 || !slices.Equal(after, []uint64{1}) {
			t.Fatalf("ended before: %v, then %v", before, after)
		}
		r.restart()
	}
	if err := r.Drop(1); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if _, _, found := r.List(1, 0, 9); found || r.left() != 2 {
		t.Errorf("dropped, and found %t; %d blobs are left of two", found, r.left())
	}
}

// TestLostByTheDisk: of a result whose blob the disk has lost the others' files stay.
func TestLostByTheDisk(t *testing.T) {
	r := newRig(t)
	lost, other := r.result(0, 1, "lost"), r.result(1, 1, "other")
	r.keep(1, lost)
	r.keep(1, other)
	path, err := r.files.Path(store.OwnOf("ann"), lost.Manifest.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if broken := r.restart(); broken != 1 {
		t.Errorf("%d are broken, want one", broken)
	}
	if _, yes, _ := r.Names(1, other.Manifest.Hash); !yes || len(r.list(1)) != 2 {
		t.Errorf("left: %+v", r.list(1))
	}
}

// countingJournal counts syncs, and lets the first one wait.
type countingJournal struct {
	*record.Journal
	first, release chan struct{}
	once           sync.Once
	mu             sync.Mutex
	syncs          int
}

func (j *countingJournal) Commit(w []record.Write) error {
	j.once.Do(func() { close(j.first); <-j.release })
	j.mu.Lock()
	j.syncs++
	j.mu.Unlock()
	return j.Journal.Commit(w)
}

// failingJournal fails as often as it says.
type failingJournal struct {
	*record.Journal
	fails int
}

func (j *failingJournal) Commit(w []record.Write) error {
	if j.fails--; j.fails >= 0 {
		return syscall.ENOSPC
	}
	return j.Journal.Commit(w)
}

// TestOnlyWhatIsDurableIsKept: what the journal did not take is not said to be here, and the next result of its job can
// be read again.
func TestOnlyWhatIsDurableIsKept(t *testing.T) {
	r := newRig(t)
	r.Book.journal = &failingJournal{r.journal, 1}
	first, second := r.result(0, 1, "first"), r.result(1, 1, "second")
	if err := r.Keep(1, first); !errors.Is(err, syscall.ENOSPC) || r.Has(1, first) {
		t.Errorf("on a full disk: %v, kept: %t", err, r.Has(1, first))
	}
	r.keep(1, second)
	if broken := r.restart(); broken != 0 || !r.Has(1, second) || r.Has(1, first) {
		t.Errorf("kept %+v, %d of it broken", r.list(1), broken)
	}
}

// TestResultsShareSyncs: those that come while a sync is under way share the next one.
func TestResultsShareSyncs(t *testing.T) {
	r := newRig(t)
	j := &countingJournal{Journal: r.journal, first: make(chan struct{}), release: make(chan struct{})}
	r.Book.journal = j
	list := make([]node.TaskResult, 20)
	for i := range list {
		list[i] = r.result(uint32(i), 1, "same")
	}
	var wg sync.WaitGroup
	keep := func(i int) {
		wg.Go(func() {
			if err := r.Keep(1, list[i]); err != nil {
				t.Error(err)
			}
		})
	}
	keep(0)
	<-j.first
	for i := range list[1:] {
		keep(i + 1)
	}
	for len(r.list(1)) < len(list) { // all wait, or are about to
		runtime.Gosched()
	}
	close(j.release)
	wg.Wait()
	if j.syncs > len(list)/2 {
		t.Errorf("%d syncs for %d results", j.syncs, len(list))
	}
	r.restart()
	if got := r.list(1); !slices.Equal(got, list) {
		t.Errorf("kept %+v", got)
	}
}
