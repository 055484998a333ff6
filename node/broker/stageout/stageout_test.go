package stageout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// left is a handler's side: what attempts have left, in the order of the paths.
type left struct {
	files   []leftFile
	err     error // before the first file
	skipped int   // names that cannot travel
	// fails is how often collecting fails in the middle.
	fails int
	want  executor.Outputs // as last asked
}

type leftFile struct {
	path    string
	content []byte
}

func (l *left) Collect(_ context.Context, _ executor.ID, want executor.Outputs, sink executor.OutputSink) error {
	if l.want = want; l.err != nil {
		return l.err
	}
	for i, f := range l.files {
		if l.fails > 0 && i == len(l.files)-1 {
			l.fails--
			return fmt.Errorf("read %s: %w", f.path, executor.ErrOutputChanged)
		}
		o := executor.OutputFile{Path: f.path, Size: int64(len(f.content)), Executable: i == 0}
		if err := sink.File(o, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}
	for i := range l.skipped {
		sink.Skipped([]string{"fifo", "n/\xff"}[i%2], []string{"a pipe", "a name that is not UTF-8"}[i%2])
	}
	return nil
}

type rig struct {
	*testing.T
	*Keeper
	store   *store.Store
	journal *record.Journal
	now     time.Time
	quota   int64
	wanted  map[command.AttemptRef]bool
	failed  map[command.AttemptRef]bool // and are what is left of their tasks
	change  uint64
	behind  error
	results []node.TaskResult
	pauses  []time.Duration
}

func newRig(t *testing.T) *rig {
	r := &rig{
		T: t, now: time.Unix(1_700_000_000, 0), quota: 1 << 30, change: 1,
		wanted: map[command.AttemptRef]bool{}, failed: map[command.AttemptRef]bool{},
	}
	r.openStore(t.TempDir())
	var err error
	if r.journal, err = record.OpenJournal(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.store.Close(), r.journal.Close() })
	r.reopen()
	return r
}

func (r *rig) openStore(dir string) {
	limit := store.Limit{Max: r.quota, Keep: 24 * time.Hour}
	var err error
	if r.store, err = store.Open(store.Options{
		Dir: dir, Now: func() time.Time { return r.now },
		Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	}); err != nil {
		r.Fatal(err)
	}
	r.store.Repin(func(func(string, store.Ref) bool) {})
}

// reopen is the next life of the broker on the same journal.
func (r *rig) reopen() {
	r.Keeper = New(Config{
		Site: "b", Store: r.store, Hold: 7 * 24 * time.Hour, Now: func() time.Time { return r.now },
		UserOf:  func(uint64) string { return "alice" },
		Record:  func(_ context.Context, w []record.Write) error { return r.journal.Commit(w) },
		Wanted:  func(ref command.AttemptRef) bool { return r.wanted[ref] },
		Left:    func(ref command.AttemptRef) bool { return r.failed[ref] },
		Change:  func() uint64 { return r.change },
		Current: func() error { return r.behind },
		KeepResult: func(_ uint64, x node.TaskResult) error {
			r.results = append(r.results, x)
			return nil
		},
	})
	r.pause = func(ctx context.Context, d time.Duration) error {
		r.pauses = append(r.pauses, d)
		return ctx.Err()
	}
	if err := r.Recover(r.journal); err != nil {
		r.Fatal(err)
	}
}

// ended is an attempt that has ended with an exit code.
func ended(job string, exit int) Order {
	return Order{
		ID:      executor.ID{Job: job, Task: 2, Attempt: 1, Token: 9},
		Outputs: executor.Outputs{Paths: []string{"out/*"}, Optional: []string{"log"}},
		Result:  executor.Result{ExitCode: exit, Started: time.Unix(1, 0)},
	}
}

func refTo(t *testing.T, o Order) command.AttemptRef {
	t.Helper()
	ref, err := node.AttemptOf(o.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// collect is Collect of an attempt that is wanted.
func (r *rig) collect(l *left, o Order) Outcome {
	r.Helper()
	r.wanted[refTo(r.T, o)] = true
	out, err := r.Collect(r.Context(), l, o)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// get asks for a blob as a site.
func (r *rig) get(from string, o Order, what transfer.What, h [32]byte) (string, transfer.Refusal) {
	r.Helper()
	q := transfer.Request{Blob: transfer.Blob{Attempt: refTo(r.T, o), What: what, Hash: h}}
	s, refusal := r.Answer(r.Context(), from, q)
	if s == nil {
		return "", refusal
	}
	defer s.Close()
	b, err := io.ReadAll(io.NewSectionReader(s, 0, s.Size()))
	if err != nil {
		r.Fatal(err)
	}
	return string(b), refusal
}

var big = bytes.Repeat([]byte("0123456789"), 5000)

func results() *left {
	return &left{files: []leftFile{{"out/big", big}, {"out/empty", nil}, {"out/small", []byte("small")}}}
}

// TestOwnerGetsWhatItsTaskLeft: the manifest and what it names, as it was left, after a restart, too; nobody else gets
// anything, and the owner nothing else.
func TestOwnerGetsWhatItsTaskLeft(t *testing.T) {
	r := newRig(t)
	o := ended("a.7", 0)
	out := r.collect(results(), o)
	if out.Output.Bytes != int64(len(big)+5) || out.Failed+out.Lost != "" {
		t.Fatalf("%+v", out)
	}
	other, err := r.store.Put(t.Context(), store.OutgoingOf("a"), strings.NewReader("of another task"), 100)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		text, _ := r.get("a", o, transfer.Manifest, out.Output.Manifest)
		m := files.NewManifestReader(strings.NewReader(text))
		var paths []string
		for e, err := m.Next(); err == nil; e, err = m.Next() {
			paths = append(paths, fmt.Sprint(e.Path, e.Size, e.Executable, e.Inline != nil))
		}
		want := []string{"out/big50000 true false", "out/empty0 false true", "out/small5 false true"}
		if !slices.Equal(paths, want) {
			t.Errorf("named are %q", paths)
		}
		if got, _ := r.get("a", o, transfer.Output, files.HashOf(big)); got != string(big) {
			t.Errorf("%d bytes of %d come", len(got), len(big))
		}
		for _, c := range []struct {
			from string
			what transfer.What
			hash [32]byte
			want transfer.Refusal
		}{
			{"c", transfer.Manifest, out.Output.Manifest, transfer.NotAllowed},
			{"c", transfer.Output, files.HashOf(big), transfer.NotAllowed},
			{"a", transfer.Output, other.Hash, transfer.NotAllowed},
			{"a", transfer.Output, out.Output.Manifest, transfer.NotAllowed},
			{"a", transfer.Manifest, files.HashOf(big), transfer.NotAllowed},
			{"a", transfer.Input, files.HashOf(big), transfer.NotAllowed},
			{"a", 99, files.HashOf(big), transfer.NotAllowed},
		} {
			if got, refusal := r.get(c.from, o, c.what, c.hash); refusal != c.want || got != "" {
				t.Errorf("%s asks for %d of %x: %d, %d bytes", c.from, c.what, c.hash[:4], refusal, len(got))
			}
		}
		r.store.Unpin(PinOf(o.ID)) // as a restart does
		r.reopen()
	}
	o.ID.Attempt = 2
	if _, refusal := r.get("a", o, transfer.Manifest, out.Output.Manifest); refusal != transfer.NotHere {
		t.Errorf("another attempt's: %d", refusal)
	}
}

// TestUnwantedIsRemoved: what was fetched, or is wanted no more, goes at once with its bytes; what nobody fetches goes
// when its time is over, and its owner is told so.
func TestUnwantedIsRemoved(t *testing.T) {
	r := newRig(t)
	o, later, failed := ended("a.7", 0), ended("a.8", 0), ended("a.9", 1)
	out := r.collect(results(), o)
	kept := r.collect(&left{files: []leftFile{{"x", bytes.Repeat([]byte("x"), 20_000)}}}, later)
	lost := r.collect(&left{files: []leftFile{{"y", []byte("why")}}}, failed)
	r.Sweep(t.Context(), false)
	if _, refusal := r.get("a", o, transfer.Manifest, out.Output.Manifest); refusal != transfer.Granted {
		t.Fatal("what is wanted was removed")
	}
	r.wanted[refTo(t, o)], r.wanted[refTo(t, failed)] = false, false
	r.Sweep(t.Context(), false)
	if len(r.by) != 3 {
		t.Error("it looked, though nothing had changed")
	}
	r.change++
	r.Sweep(t.Context(), false)
	r.reopen()
	if _, refusal := r.get("a", o, transfer.Manifest, out.Output.Manifest); refusal != transfer.NotHere {
		t.Errorf("what was fetched: %d", refusal)
	}
	if _, _, err := r.store.Collect(); err != nil {
		t.Fatal(err)
	}
	if missing := r.store.Missing(store.OutgoingOf("a"), files.HashOf(big)); len(missing) != 1 {
		t.Error("its bytes are still there")
	}
	if _, refusal := r.get("a", failed, transfer.Manifest, lost.Output.Manifest); refusal != transfer.Granted {
		t.Errorf("what a failed attempt left, at once: %d", refusal)
	}
	r.failed[refTo(t, failed)] = true
	r.now = r.now.Add(24 * time.Hour)
	r.Sweep(t.Context(), true)
	if _, refusal := r.get("a", failed, transfer.Manifest, lost.Output.Manifest); refusal != transfer.Granted {
		t.Errorf("what is left of a task that failed, a day later: %d", refusal)
	}
	r.failed[refTo(t, failed)] = false
	r.Sweep(t.Context(), true)
	if _, refusal := r.get("a", failed, transfer.Manifest, lost.Output.Manifest); refusal != transfer.NotHere {
		t.Errorf("what an attempt left that does not count: %d", refusal)
	}
	r.now = r.now.Add(7 * 24 * time.Hour)
	r.Sweep(t.Context(), true)
	if _, refusal := r.get("a", later, transfer.Manifest, kept.Output.Manifest); refusal != transfer.Gone {
		t.Errorf("what its owner has not fetched in a week: %d", refusal)
	}
	if u := r.store.Usage(store.Outgoing); u.Blobs != 0 {
		if _, _, err := r.store.Collect(); err != nil || r.store.Usage(store.Outgoing).Blobs != 0 {
			t.Errorf("%d blobs are left", u.Blobs)
		}
	}
}

// TestOutputsOutlastAStart: a broker that has just begun has a state that may not know of the attempt yet.
func TestOutputsOutlastAStart(t *testing.T) {
	r := newRig(t)
	o := ended("a.7", 0)
	out := r.collect(results(), o)
	r.reopen()
	r.wanted[refTo(t, o)], r.behind = false, node.ErrNotReady
	r.Sweep(t.Context(), true)
	r.wanted[refTo(t, o)], r.behind = true, nil
	r.Sweep(t.Context(), true)
	if _, refusal := r.get("a", o, transfer.Manifest, out.Output.Manifest); refusal != transfer.Granted {
		t.Errorf("what is wanted by the state of now: %d", refusal)
	}
}

// TestOwnResultsAreKept: what this site's own task has left is its user's, and is said to whoever keeps results.
func TestOwnResultsAreKept(t *testing.T) {
	r := newRig(t)
	out := r.collect(results(), ended("b.3", 0))
	want := node.TaskResult{
		Task: 2, Attempt: 1, Bytes: int64(len(big) + 5),
		Manifest: files.Blob{Hash: out.Output.Manifest, Size: out.Output.Size},
	}
	if len(r.results) != 1 || r.results[0] != want {
		t.Errorf("kept %+v", r.results)
	}
	if missing := r.store.Missing(store.OwnOf("alice"), want.Manifest.Hash, files.HashOf(big)); len(missing) != 0 {
		t.Errorf("missing %v", missing)
	}
	if u := r.store.Usage(store.Outgoing); u.Blobs != 0 || len(r.by) != 0 {
		t.Error("it is kept for another site, too")
	}
}

// TestWhoseFaultItIs: the task's fails it, this site's is a loss.
func TestWhoseFaultItIs(t *testing.T) {
	for name, c := range map[string]struct {
		l            *left
		quota        int64
		failed, lost string
		tries        int
	}{
		"missing":  {&left{err: &executor.MissingOutputError{Glob: "out/*"}}, 1 << 20, `output "out/*" is missing`, "", 1},
		"too much": {&left{err: &executor.OutputBoundError{What: "bytes", Most: 5}}, 1 << 20, "more than 5 bytes", "", 1},
		"unsorted": {&left{files: []leftFile{{"b", nil}, {"b/c", nil}}}, 1 << 20, "cannot travel", "", 1},
		"no name":  {&left{files: []leftFile{{"a\nb", nil}}}, 1 << 20, "cannot travel", "", 1},
		"no room":  {results(), 8192, "", "is full", collectTries},
		"a sick disk": {
			&left{err: executor.ErrUnreadable}, 1 << 20, "", "cannot be read now", collectTries,
		},
		"forgotten": {&left{err: executor.ErrUnknownAttempt}, 1 << 20, "", "unknown attempt", 1},
		"changed once": {
			&left{files: []leftFile{{"x", big}, {"y", nil}}, fails: 1}, 1 << 20, "", "", 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if err := r.store.Close(); err != nil {
				t.Fatal(err)
			}
			r.quota = c.quota
			r.openStore(t.TempDir())
			r.reopen()
			out := r.collect(c.l, ended("a.7", 0))
			if !strings.Contains(out.Failed, c.failed) || (out.Failed == "") != (c.failed == "") ||
				!strings.Contains(out.Lost, c.lost) || (out.Lost == "") != (c.lost == "") {
				t.Errorf("%+v", out)
			}
			bad := out.Failed+out.Lost != ""
			if len(r.pauses) != c.tries-1 || bad != out.Output.IsZero() || bad == (len(r.by) == 1) {
				t.Errorf("%d pauses; %+v; kept %d", len(r.pauses), out, len(r.by))
			}
			if _, _, err := r.store.Collect(); err != nil {
				t.Fatal(err)
			}
			if n := r.store.Usage(store.Outgoing).Blobs; bad && n != 0 {
				t.Errorf("%d blobs are left of it", n)
			}
		})
	}
}

// TestWhatStaysBehindIsCounted: how many outputs cannot travel is told, and of what kinds, and what can is kept all the
// same. Every site reads that: the first one was named.
func TestWhatStaysBehindIsCounted(t *testing.T) {
	const both = "a pipe, a name that is not UTF-8"
	for skipped, want := range map[int]string{
		0: "", 1: "1 output cannot travel: a pipe", 2: "2 outputs cannot travel: " + both,
		3: "3 outputs cannot travel: " + both, executor.MaxSkipped: "100 outputs or more cannot travel: " + both,
	} {
		r := newRig(t)
		l := results()
		l.skipped = skipped
		if out := r.collect(l, ended("a.7", 0)); out.Note != want || out.Failed+out.Lost != "" || out.Output.IsZero() {
			t.Errorf("%d that cannot travel: %+v", skipped, out)
		}
	}
}

// TestWhatCannotTravelIsNotNamed: a failure for paths that no manifest can have says so to every site, and says none.
func TestWhatCannotTravelIsNotNamed(t *testing.T) {
	for _, paths := range [][2]string{{"secret", "secret/b"}, {"a", "secret\nb"}} {
		r := newRig(t)
		out := r.collect(&left{files: []leftFile{{paths[0], nil}, {paths[1], nil}}}, ended("a.7", 0))
		if !strings.Contains(out.Failed, "cannot travel") || strings.Contains(out.Failed, "secret") {
			t.Errorf("%q: %+v", paths, out)
		}
	}
}

// TestFailedAttemptsLeaveWhatIsThere: nothing is required of them.
func TestFailedAttemptsLeaveWhatIsThere(t *testing.T) {
	r := newRig(t)
	l := results()
	r.collect(l, ended("a.7", 1))
	if len(l.want.Paths) != 0 || !slices.Equal(l.want.Optional, []string{"out/*", "log"}) {
		t.Errorf("collected %+v", l.want)
	}
}

// TestCollectingEndsWithItsBroker: nothing is said of the attempt then, and the next life collects it again.
func TestCollectingEndsWithItsBroker(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stops := errors.New("the broker stops")
	cancel(stops)
	out, err := r.Collect(ctx, results(), ended("a.7", 0))
	if !errors.Is(err, stops) || out != (Outcome{}) || len(r.by) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestNamesAreBounded: of many large manifests the newest are remembered.
func TestNamesAreBounded(t *testing.T) {
	x := newIndex()
	hashes := map[files.Hash]struct{}{}
	for i := range 100_000 {
		hashes[files.Hash{byte(i), byte(i >> 8), byte(i >> 16)}] = struct{}{}
	}
	for i := range uint32(50) {
		x.put(command.AttemptRef{Task: i}, hashes)
		if i%7 == 0 {
			x.drop(command.AttemptRef{Task: i})
		}
		if x.sum > maxNames || x.sum != 100_001*len(x.by) {
			t.Fatalf("%d hashes are remembered, of %d manifests", x.sum, len(x.by))
		}
	}
	if _, known := x.get(command.AttemptRef{Task: 48}); !known {
		t.Error("the newest is forgotten")
	}
}
