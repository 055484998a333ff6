package store

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

func TestPutAndOpen(t *testing.T) {
	r := testRig(t)
	for _, content := range []string{"", "abc", text("long", 700_000)} {
		b := r.put(own, content)
		if again := r.put(own, content); again != b {
			t.Errorf("again: %v", again)
		}
		r.want(own, content)
		if err := r.Verify(own, b.Hash); err != nil {
			t.Error(err)
		}
		st, err := os.Stat(filepath.Join(r.dir, fileOf(key{own, b.Hash})))
		if err != nil || st.Mode() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
	}
	if u := r.Usage(Own); u.Blobs != 3 || u.Bytes != 2*block+charge(700_000) {
		t.Errorf("%+v", u)
	}
	if len(r.names()) != 3 {
		t.Errorf("%q", r.names())
	}
	r.reopen()
	r.want(own, "abc")
	if u := r.Usage(Own); u.Blobs != 3 || u.Bytes != 2*block+charge(700_000) {
		t.Errorf("after a restart: %+v", u)
	}
}

// Content that is there, whole and durable, is neither written nor synced again: a short one not at all, a long one is
// written before that is known. Damaged or in another place it is.
func TestPutOfWhatIsThereWritesNothing(t *testing.T) {
	r := testRig(t)
	long := text("long", 2*copyBytes+1)
	passed := map[point]int{}
	r.fault = func(p point) error {
		passed[p]++
		return nil
	}
	for _, at := range []Place{own, out, cached} {
		for _, content := range []string{"", "short", text("of one buffer", logMost+1), long} {
			r.put(at, content)
			used := r.used
			r.clock = r.clock.Add(time.Minute)
			clear(passed)
			r.put(at, content)
			if content != long {
				if len(passed) > 0 {
					t.Errorf("%.9q of %v again: %v", content, at, passed)
				}
			} else if passed[pointSync]+passed[pointRename]+passed[pointFolder] > 0 || passed[pointRemove] != 1 {
				t.Errorf("%.9q of %v again: %v", content, at, passed)
			}
			if e := r.entries[slot{key: ref(at, content)}]; !e.used.Equal(r.clock) || r.used != used {
				t.Errorf("%.9q of %v was used at %v, %v bytes count, want %v", content, at, e.used, r.used, used)
			}
			r.want(at, content)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, fileOf(ref(own, "short"))), []byte("SHORT"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(own, ref(own, "short").Hash); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	clear(passed)
	r.put(own, "short")
	if passed[pointLog] != 1 || passed[pointRename] != 1 {
		t.Errorf("damaged: %v", passed)
	}
	r.want(own, "short")
	r.wantWhole("at the end")
}

// Whoever knows a hash gets nothing by it, and another owner's bytes are stored again.
func TestOwnersShareNothing(t *testing.T) {
	r := testRig(t)
	other := Place{Cache, "site-3"}
	b := r.put(cached, "secret")
	r.wantNone(other, "secret")
	r.wantNone(own, "secret")
	r.wantNone(out, "secret")
	if missing := r.Missing(other, b.Hash); len(missing) != 1 {
		t.Error("another owner learns that it is there")
	}
	p, err := r.Begin(other, b)
	if err != nil || len(p.Missing()) != 1 {
		t.Fatalf("%v: another owner needs to send nothing", err)
	}
	if err = p.Abandon(); err != nil {
		t.Fatal(err)
	}
	r.put(other, "secret")
	if u := r.Usage(Cache); u.Blobs != 2 {
		t.Errorf("%+v", u)
	}
}

func TestOwnersNames(t *testing.T) {
	r := testRig(t)
	owners := []string{".", "..", "../own", "a/b", "%2E", "ü", "\xff\x00", "a@b.c", strings.Repeat("/", MaxOwner)}
	for _, owner := range owners {
		r.put(Place{Own, owner}, "of "+owner)
	}
	r.reopen()
	for _, owner := range owners {
		r.want(Place{Own, owner}, "of "+owner)
	}
	for _, bad := range []Place{{Own, ""}, {Own, strings.Repeat("a", MaxOwner+1)}, {spaces, "a"}} {
		_, err := r.Put(t.Context(), bad, strings.NewReader("x"), 1)
		_, cause := r.Open(bad, files.Hash{})
		_, begin := r.Begin(bad, files.Blob{})
		for _, err := range []error{err, cause, begin} {
			if !errors.Is(err, ErrOwner) {
				t.Errorf("%v: %v", bad, err)
			}
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(r.dir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the store: %v, %v", entries, err)
	}
}

func TestPath(t *testing.T) {
	t.Chdir(t.TempDir())
	r := newRig(t, "data", roomy())
	defer r.Close()
	b := r.put(cached, "content")
	path, err := r.Path(cached, b.Hash)
	if err != nil || !filepath.IsAbs(path) {
		t.Fatalf("%q, %v", path, err)
	}
	if got, cause := os.ReadFile(path); cause != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, cause)
	}
	if _, err = r.Path(own, b.Hash); !errors.Is(err, ErrUnknown) {
		t.Errorf("of another place: %v", err)
	}
}

func TestPutFails(t *testing.T) {
	r := testRig(t)
	failed := errors.New("cut off")
	cut := io.MultiReader(strings.NewReader(text("x", 300_000)), iotest.ErrReader(failed))
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(failed)
	for name, c := range map[string]struct {
		ctx   context.Context
		r     io.Reader
		limit int64
		want  error
	}{
		"too large":          {t.Context(), strings.NewReader("12345"), 4, ErrTooLarge},
		"larger than memory": {t.Context(), strings.NewReader(text("x", 600_000)), 599_999, ErrTooLarge},
		"cut off":            {t.Context(), cut, 1 << 20, failed},
		"cancelled":          {cancelled, strings.NewReader("x"), 1, failed},
	} {
		if b, err := r.Put(c.ctx, own, c.r, c.limit); !errors.Is(err, c.want) || b != (files.Blob{}) {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
	if u := r.Usage(Own); u.Bytes != 0 || len(r.names()) != 0 {
		t.Errorf("%+v, %q", u, r.names())
	}
}

func TestQuota(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{4 * block, 0}, Limit{4 * block, 0}, Limit{4 * block, 0}))
	defer r.Close()
	for _, at := range []Place{own, out} {
		r.put(at, "one")
		r.put(at, text("two", 2*block))
		if _, err := r.Put(t.Context(), at, strings.NewReader(text("three", block+1)), 1<<20); !errors.Is(err, ErrFull) {
			t.Errorf("%v: %v", at, err)
		}
		if _, err := r.Begin(at, files.Blob{Size: block + 1}); !errors.Is(err, ErrFull) {
			t.Errorf("%v: %v", at, err)
		}
		r.put(at, text("three", block))
		if u := r.Usage(at.Space); u.Bytes != u.Max || u.Blobs != 3 {
			t.Errorf("%v: %+v", at, u)
		}
	}
}

// The cache makes room: the least recently used goes, but nothing that is pinned, read or filled.
func TestCacheMakesRoom(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{}, Limit{4 * block, 0}, Limit{}))
	defer r.Close()
	step := func() { r.clock = r.clock.Add(time.Minute) }
	for _, content := range []string{"one", "two", "three", "four"} {
		r.put(cached, content)
		step()
	}
	r.Pin("job", ref(cached, "one"))
	reader, err := r.Open(cached, ref(cached, "two").Hash)
	if err != nil {
		t.Fatal(err)
	}
	r.want(cached, "three") // used last
	step()
	r.put(cached, "five")
	r.wantNone(cached, "four")
	if _, err = r.Put(t.Context(), cached, strings.NewReader(text("six", 2*block+1)), 1<<20); !errors.Is(err, ErrFull) {
		t.Errorf("beside what stays: %v", err)
	}
	r.want(cached, "three")
	r.put(cached, text("six", 2*block))
	r.wantNone(cached, "three")
	r.wantNone(cached, "five")
	if b, cause := io.ReadAll(reader); cause != nil || string(b) != "two" {
		t.Errorf("what was open: %q, %v", b, cause)
	}
	step()
	if err = errors.Join(reader.Close(), reader.Close()); err != nil {
		t.Fatal(err)
	}
	r.Unpin("job")
	step()
	r.put(cached, "seven")
	r.wantNone(cached, "two")
	r.want(cached, "one")
}

func TestNothingGoesBeforeRepin(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{4 * block, time.Hour}, Limit{block, 0}, Limit{block, time.Hour}))
	defer func() { _ = r.Close() }()
	r.put(own, "input")
	r.put(cached, "cached")
	r.put(out, "result")
	r.clock = r.clock.Add(48 * time.Hour)
	r.reopen()
	if n, more, err := r.Collect(); n != 0 || more || err != nil {
		t.Errorf("%d, %t, %v", n, more, err)
	}
	if _, err := r.Put(t.Context(), cached, strings.NewReader("more"), 10); !errors.Is(err, ErrFull) {
		t.Errorf("the cache: %v", err)
	}
	missing := r.Repin(func(yield func(string, Ref) bool) {
		_ = yield("job", ref(own, "input")) && yield("job", ref(own, "lost")) && yield("other", ref(own, "input"))
	})
	if len(missing) != 1 || missing[0] != ref(own, "lost") {
		t.Errorf("missing: %v", missing)
	}
	if n, _, err := r.Collect(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	r.wantNone(out, "result")
	r.want(own, "input")
	r.want(cached, "cached")
	r.Unpin("job")
	if n, _, _ := r.Collect(); n != 0 {
		t.Error("another one's pin is over")
	}
	r.Unpin("other")
	if n, _, _ := r.Collect(); n != 1 {
		t.Error("it stays")
	}
}

// An upload stays a day after somebody put it or asked for it; a result goes with its last pin.
func TestCollect(t *testing.T) {
	r := testRig(t)
	b := r.put(own, "upload")
	r.put(out, "result")
	if missing := r.Pin("attempt", ref(out, "result"), ref(out, "none")); len(missing) != 1 {
		t.Errorf("missing: %v", missing)
	}
	r.clock = r.clock.Add(23 * time.Hour)
	if missing := r.Missing(own, b.Hash, files.Hash{}); !slices.Equal(missing, []files.Hash{{}}) {
		t.Errorf("missing: %v", missing)
	}
	r.clock = r.clock.Add(23 * time.Hour)
	collect := func(want int) {
		t.Helper()
		if n, more, err := r.Collect(); n != want || more || err != nil {
			t.Errorf("%d removed, %t, %v; want %d", n, more, err, want)
		}
	}
	collect(0)
	r.Unpin("attempt")
	r.reopen() // which forgets nothing of that
	r.Repin(noPins)
	collect(1)
	r.wantNone(out, "result")
	r.clock = r.clock.Add(time.Hour)
	collect(1)
	r.wantNone(own, "upload")
	if len(r.names()) != 0 || r.Usage(Own) != (Usage{Max: 1 << 30}) {
		t.Errorf("%q, %+v", r.names(), r.Usage(Own))
	}
}

func TestCollectIsBounded(t *testing.T) {
	r := testRig(t)
	for n := range maxCollected + 1 {
		r.put(own, text("x", n+1))
	}
	r.clock = r.clock.Add(25 * time.Hour)
	for _, want := range []int{maxCollected, 1, 0} {
		if n, more, err := r.Collect(); n != want || more != (want == maxCollected) || err != nil {
			t.Errorf("%d, %t, %v; want %d", n, more, err, want)
		}
	}
}

// A pin of what is not there yet holds once it is.
func TestPinBeforePut(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{}, Limit{2 * block, 0}, Limit{}))
	defer r.Close()
	r.Pin("attempt", ref(cached, "input"))
	r.put(cached, "input")
	r.put(cached, "other")
	r.put(cached, "another")
	r.want(cached, "input")
	r.wantNone(cached, "other")
}

func TestClosedStore(t *testing.T) {
	r := testRig(t)
	b := r.put(own, "x")
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	_, put := r.Put(t.Context(), own, strings.NewReader("y"), 1)
	_, begin := r.Begin(own, files.BlobOf([]byte("y")))
	_, opened := r.Open(own, b.Hash)
	for _, err := range []error{put, begin, opened} {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if n, _, err := r.Collect(); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	r := testRig(t)
	r.opts.MaxOpen = 3
	r.reopen()
	b := r.put(own, "x")
	p, err := r.Begin(own, files.BlobOf([]byte("y")))
	if err != nil {
		t.Fatal(err)
	}
	one, err := r.Open(own, b.Hash)
	if err != nil {
		t.Fatal(err)
	}
	_, opened := r.Open(own, b.Hash)
	_, put := r.Put(t.Context(), own, strings.NewReader("z"), 1)
	_, begin := r.Begin(own, files.BlobOf([]byte("z")))
	for _, err = range []error{opened, put, begin} {
		if !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	}
	if err = errors.Join(one.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if len(r.Store.open) != 0 {
		t.Errorf("%d files are open", len(r.Store.open))
	}
}

// TestPinsAreSaidOneByOne: pins that were made since the start hold, whoever made them, and nothing goes before all of
// them are said.
func TestPinsAreSaidOneByOne(t *testing.T) {
	r := testRig(t)
	pinned, other := r.put(own, "pinned"), r.put(own, "other")
	r.reopen()
	r.clock = r.clock.Add(48 * time.Hour)
	r.Pin("job/1", Ref{own, pinned.Hash})
	if n, _, err := r.Collect(); n != 0 || err != nil {
		t.Fatalf("%d blobs went before all pins were said, %v", n, err)
	}
	r.PinsSaid()
	if n, _, err := r.Collect(); n != 1 || err != nil {
		t.Errorf("%d blobs went, %v", n, err)
	}
	if got := r.Sizes(own, pinned.Hash, other.Hash); !slices.Equal(got, []int64{pinned.Size, -1}) {
		t.Errorf("sizes %v", got)
	}
}

// TestWithdraw: what has just come goes, and nothing that was there, or that somebody has put, asked for, pinned or
// opened since.
func TestWithdraw(t *testing.T) {
	r := testRig(t)
	r.put(own, "was there")
	r.clock = r.clock.Add(time.Second)
	began := r.clock
	for _, content := range []string{"was there", "new", "put again", "asked for", "pinned", "open"} {
		r.put(own, content)
	}
	r.clock = r.clock.Add(time.Second)
	r.put(own, "put again")
	r.Missing(own, ref(own, "asked for").Hash)
	r.Pin("job", ref(own, "pinned"))
	open, err := r.Open(own, ref(own, "open").Hash)
	if err != nil {
		t.Fatal(err)
	}
	var all []Ref
	for _, content := range []string{"was there", "new", "put again", "asked for", "pinned", "open", "never there"} {
		all = append(all, ref(own, content))
	}
	before := r.Usage(Own)
	if err := errors.Join(r.Withdraw(began, all...), open.Close()); err != nil {
		t.Error(err)
	}
	r.wantNone(own, "new")
	for _, content := range []string{"was there", "put again", "asked for", "pinned", "open"} {
		r.want(own, content)
	}
	if u := r.Usage(Own); u.Blobs != before.Blobs-1 || u.Bytes != before.Bytes-block {
		t.Errorf("%+v, before %+v", u, before)
	}
}
