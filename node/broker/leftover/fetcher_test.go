package leftover

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/delivery"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// federation is the state, and the site that ran everything: task i of job 1 has left one small file there.
type federation struct {
	mu       sync.Mutex
	tasks    []fsm.Delivery // guarded by mu
	blobs    map[files.Hash][]byte
	refuse   transfer.Refusal               // guarded by mu
	released map[command.AttemptRef]int     // guarded by mu
	asked    map[command.AttemptRef]int     // for manifests; guarded by mu
	wanted   func(command.AttemptRef) error // nil: all are
	room     int                            // of the list, 0 = maxKnown
}

var job = command.JobID{Site: "home", Num: 1}

// left returns a federation in which so many tasks have failed.
func left(t *testing.T, tasks int) *federation {
	t.Helper()
	f := &federation{
		blobs: map[files.Hash][]byte{}, released: map[command.AttemptRef]int{}, asked: map[command.AttemptRef]int{},
	}
	for i := range tasks {
		content := fmt.Appendf(nil, "task %d", i)
		text, err := files.EncodeManifest([]files.Entry{{
			Path: "log", Size: int64(len(content)), Hash: files.HashOf(content), Inline: content,
		}})
		if err != nil {
			t.Fatal(err)
		}
		b := files.BlobOf(text)
		f.blobs[b.Hash] = text
		f.tasks = append(f.tasks, fsm.Delivery{
			AttemptRef: command.AttemptRef{Job: job, Task: uint32(i), Attempt: 2, Token: 9}, Site: "elsewhere",
			Output: command.Output{Manifest: b.Hash, Size: b.Size, Bytes: int64(len(content))},
		})
	}
	return f
}

func (f *federation) Jobs(uint64) ([]command.JobID, uint64) { return []command.JobID{job}, 0 }

func (f *federation) Left(_ command.JobID, from uint32) (list []fsm.Delivery, next uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list = f.tasks[from:]
	if len(list) <= replica.TasksAtOnce {
		return list, 0
	}
	return list[:replica.TasksAtOnce], from + replica.TasksAtOnce
}

func (f *federation) Now() int64                         { return 1 }
func (f *federation) Where(site string) (string, uint64) { return site + ":1", 1 }

func same(_ command.JobID, index uint32) uint32 { return index }

func (f *federation) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Pull implements transfer.Puller.
func (f *federation) Pull(context.Context, string, string, uint64, transfer.Blob, transfer.Sink) error {
	return transfer.ErrUnreachable
}

// PullBatch implements transfer.Puller.
func (f *federation) PullBatch(_ context.Context, _, _ string, _ uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	for i, b := range blobs {
		f.mu.Lock()
		refuse := f.refuse
		if b.What == transfer.Release {
			f.released[b.Attempt]++
			refuse = transfer.Gone
		} else {
			f.asked[b.Attempt]++
		}
		f.mu.Unlock()
		var refused error
		if refuse != transfer.Granted {
			refused = &transfer.RefusedError{Refusal: refuse, Hash: b.Hash}
		}
		if err := take(i, f.blobs[b.Hash], refused); err != nil {
			return err
		}
	}
	return nil
}

// owner is the broker around a fetcher.
type owner struct {
	*Fetcher
	t    *testing.T
	book *results.Book
	end  func()
}

// owner opens a store and a journal, and begins a life of the broker on them.
func (f *federation) owner(t *testing.T, dirs [2]string) *owner {
	t.Helper()
	return f.ownerOf(t, dirs, f)
}

// ownerOf is owner over other transfers.
func (f *federation) ownerOf(t *testing.T, dirs [2]string, over transfer.Puller) *owner {
	t.Helper()
	limit := store.Limit{Max: 1 << 30, Keep: time.Hour}
	kept, err := store.Open(store.Options{
		Dir: dirs[0], Now: time.Now, Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := record.OpenJournal(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{t: t}
	o.book, err = results.Open(results.Options{
		Journal: journal, Store: kept, Now: time.Now, UserOf: func(uint64) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = o.book.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := replica.NewReplica()
	o.Fetcher = New(Config{
		Site: "home", Source: f, Results: o.book, Transfers: over,
		Loop: delivery.Config{
			Store: kept, Full: func(int64) error { return nil }, Wait: time.Hour, Logger: zerolog.Nop(),
		},
		WantedOf: func(_ string, ref command.AttemptRef) (delivery.Wanted, error) {
			w := delivery.Wanted{Outputs: jobspec.Outputs{
				Paths: []string{"needed"}, Optional: []string{"log"}, MaxBytes: 1 << 20,
			}}
			if f.wanted != nil {
				return w, f.wanted(ref)
			}
			return w, nil
		},
		Events: func(from node.EventID, filter node.EventFilter) *replica.Subscription {
			return r.Events(from, filter, nil)
		},
		Now: r.Feed().Now, Position: same,
	})
	if f.room > 0 {
		o.list.most = f.room
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	o.end = func() {
		cancel()
		<-done
		if kept.Close() != nil || journal.Close() != nil {
			t.Error("it cannot be closed")
		}
	}
	return o
}

// await waits until nothing is on its way, and so many were settled.
func (o *owner) await(settled func() int, want int) {
	o.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for settled() < want {
		select {
		case <-tick.C:
		case <-late:
			o.t.Fatalf("%d of %d are settled", settled(), want)
		}
	}
}

func (o *owner) kept() int {
	list, _, _ := o.book.List(job.Num, 0, 1<<20)
	return len(list)
}

// TestWhatIsLeftComes, once: what is required of tasks that succeed is not of those that failed. Each is released, and
// a restart asks for nothing again.
func TestWhatIsLeftComes(t *testing.T) {
	f := left(t, 300)
	dirs := [2]string{t.TempDir(), t.TempDir()}
	o := f.owner(t, dirs)
	releases := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.released)
	}
	o.await(releases, 300)
	if n := o.kept(); n != 300 {
		t.Errorf("%d are kept", n)
	}
	if got := o.Away(&f.tasks[7], 1); got != (node.FilesAway{}) {
		t.Errorf("it is here, and %+v", got)
	}
	o.end()
	f.set(func() { f.tasks, f.asked = append(f.tasks, left(t, 301).tasks[300]), map[command.AttemptRef]int{} })
	f.blobs = left(t, 301).blobs
	o = f.owner(t, dirs)
	o.await(o.kept, 301)
	o.end()
	if len(f.asked) != 1 {
		t.Errorf("%d are asked for again", len(f.asked))
	}
}

// TestMoreThanHasRoom: more than may be on its way at a time, of which nothing comes, passes through all the same; of
// the newest it is known why.
func TestMoreThanHasRoom(t *testing.T) {
	const room, many = 100, 250
	f := left(t, many)
	f.refuse, f.room = transfer.NotHere, room
	o := f.owner(t, [2]string{t.TempDir(), t.TempDir()})
	o.await(func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.asked)
	}, many)
	last, first := &f.tasks[many-1], &f.tasks[0]
	o.await(func() int {
		got := o.Away(last, 1)
		if !got.Coming && strings.HasPrefix(got.Why, "its files were not brought home: ") {
			return 1
		}
		return 0
	}, 1)
	o.end()
	forgotten := o.Away(first, first.SinceMs+newsWithin.Milliseconds())
	if forgotten.Coming || !strings.HasPrefix(forgotten.Why, "its files are not here") || len(o.list.lost) > room || len(o.list.order) > room {
		t.Errorf("%d are remembered; of the first: %+v", len(o.list.lost), forgotten)
	}
	if o.list.add(f.tasks[many-1]); len(o.list.open) > 0 {
		t.Error("what was given up is fetched again")
	}
}

// TestUnwantedIsNotAsked: what by the state does not count, or is not wanted by its job, is given up as such.
func TestUnwantedIsNotAsked(t *testing.T) {
	f := left(t, 3)
	f.wanted = func(ref command.AttemptRef) error {
		if ref.Task == 1 {
			return nil
		}
		return fmt.Errorf("%w: no", delivery.ErrUnwanted)
	}
	o := f.owner(t, [2]string{t.TempDir(), t.TempDir()})
	o.await(o.kept, 1)
	o.await(func() int {
		o.list.mu.Lock()
		defer o.list.mu.Unlock()
		return len(o.list.lost)
	}, 2)
	o.end()
	if len(f.asked) != 1 || f.asked[f.tasks[1].AttemptRef] != 1 {
		t.Errorf("asked for are %v", f.asked)
	}
}

// TestEvents: those of tasks of this site's jobs that ended elsewhere without success, and have left something.
func TestEvents(t *testing.T) {
	f := left(t, 1)
	o := New(Config{Site: "home", Source: f, Position: same, Loop: delivery.Config{Pace: delivery.Idle}})
	is := func(change func(*node.Event)) int {
		e := node.Event{Event: fsm.Event{
			Kind: fsm.EventTaskEnded, End: fsm.EndFailed, Job: job, Task: uint32(len(o.list.open)), Count: 1,
			Attempt: 2, Token: 9, Site: "elsewhere", Output: f.tasks[0].Output,
		}}
		change(&e)
		before := len(o.list.open)
		o.take(&e)
		return len(o.list.open) - before
	}
	for name, c := range map[string]struct {
		change func(*node.Event)
		want   int
	}{
		"failed":       {func(*node.Event) {}, 1},
		"cancelled":    {func(e *node.Event) { e.End = fsm.EndCancelled }, 1},
		"succeeded":    {func(e *node.Event) { e.End = fsm.EndSucceeded }, 0},
		"lost":         {func(e *node.Event) { e.End = fsm.EndLost }, 0},
		"at home":      {func(e *node.Event) { e.Site = "home" }, 0},
		"another's":    {func(e *node.Event) { e.Job.Site = "other" }, 0},
		"left nothing": {func(e *node.Event) { e.Output = command.Output{} }, 0},
		"never ran":    {func(e *node.Event) { e.Attempt = 0 }, 0},
	} {
		if got := is(c.change); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
