package stagein

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// handed returns what a handler is given, by path.
func (r *rig) handed(o Order) map[string]string {
	r.Helper()
	got := map[string]string{}
	err := r.Files(r.Context(), o, func(fs []executor.File, _ int64) error {
		for _, f := range fs {
			b := f.Content
			if f.Source != "" {
				var err error
				if b, err = os.ReadFile(f.Source); err != nil {
					return err
				}
			}
			got[f.Path] = string(b)
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return got
}

// TestFilesComeAsTheyAreNamed: each kind of input stands where the job's user wants it, byte for byte, small or large.
func TestFilesComeAsTheyAreNamed(t *testing.T) {
	r := newRig(t)
	big := large(3*files.PieceBytes+5, 1)
	middle := large(100_000, 2)
	dir := r.owner.manifest(t, map[string][]byte{"a/x": middle, "b": []byte("small"), "e": nil}, "a/x", "b", "e")
	each := r.owner.manifest(t, map[string][]byte{"1": []byte("one"), "2": middle, "3": []byte("three")}, "1", "2", "3")
	var told []string
	o := order(1,
		file("ref.fa", r.owner.has(big)), file("empty", r.owner.has(nil)),
		jobspec.Input{Path: "cfg", From: jobspec.FromDirectory, Blob: dir},
		jobspec.Input{Path: "in.txt", From: jobspec.FromEach, Blob: each},
		jobspec.Input{Path: "run.sh", From: jobspec.FromContent, Content: []byte("date")},
		jobspec.Input{Path: "u", From: jobspec.FromURL, URL: "https://x/u", Blob: r.owner.has([]byte("from there"))},
	)
	o.Tell = func(what string) { told = append(told, what) }
	n, err := r.Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ref.fa": string(big), "empty": "", "cfg/a/x": string(middle), "cfg/b": "small", "cfg/e": "",
		"in.txt": string(middle), "run.sh": "date", "u": "from there",
	}
	got := r.handed(o)
	sum := 0
	for path, content := range want {
		if sum += len(content); got[path] != content {
			t.Errorf("%s has %d bytes, want %d", path, len(got[path]), len(content))
		}
	}
	if len(got) != len(want) || n != int64(sum) {
		t.Errorf("%d files, %d bytes, want %d and %d", len(got), n, len(want), sum)
	}
	if last := told[len(told)-1]; last != "staging 4 of 4 files, 25.3 MB of 25.3 MB" {
		t.Errorf("at last %q", last)
	}
	for _, in := range o.Inputs {
		if n := r.owner.times(in.Blob); n > 4 {
			t.Errorf("%s was asked for %d times", in.Path, n)
		}
	}
}

// TestIndexDecidesWhichFile: a task that is run again beside fewer others than before, and so has another position,
// gets the same one of each file; that is pinned again at a start.
func TestIndexDecidesWhichFile(t *testing.T) {
	r := newRig(t)
	third := large(100_000, 2)
	each := r.owner.manifest(t, map[string][]byte{"1": large(100_000, 1), "2": nil, "3": third}, "1", "2", "3")
	o := order(0, jobspec.Input{Path: "in", From: jobspec.FromEach, Blob: each})
	o.Index = 2
	if _, err := r.Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := r.handed(o); got["in"] != string(third) {
		t.Errorf("the task of index 2 gets %d bytes of another file", len(got["in"]))
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r.limit.Max = 200_000
	r.open()
	r.Repin(&attempts.Record{ID: o.ID, Index: 2, Inputs: []attempts.InputBlob{{Blob: each, From: jobspec.FromEach}}})
	other := order(1, file("y", r.owner.has(large(150_000, 3))))
	if _, err := r.Fetch(t.Context(), other); faultOf(t, err) != inputs.Full {
		t.Errorf("its file makes room: %v", err)
	}
}

// TestTasksShareWhatTheyFetch: many attempts of one job at a time have each file come once, and an attempt that ends in
// the middle takes nothing from the others.
func TestTasksShareWhatTheyFetch(t *testing.T) {
	r := newRig(t)
	blob := r.owner.has(large(2*files.PieceBytes, 1))
	small := r.owner.has([]byte("small"))
	r.owner.gate = make(chan struct{})
	first, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		ctx := t.Context()
		if i == 0 {
			ctx = first
		}
		wg.Go(func() { _, errs[i] = r.Fetch(ctx, order(uint32(i), file("x", blob), file("y", small))) })
		if i == 0 {
			<-r.owner.waiting // it pulls, the others will wait for it
		}
	}
	cancel(errors.New("cancelled"))
	close(r.owner.gate)
	wg.Wait()
	if got := faultOf(t, errs[0]); got != inputs.Cancelled {
		t.Errorf("the first: %v", errs[0])
	}
	for i, err := range errs[1:] {
		if err != nil {
			t.Errorf("task %d: %v", i+1, err)
		}
	}
	if n := r.owner.times(small) + r.owner.times(blob); n > 6 {
		t.Errorf("12 tasks have asked for 3 parts %d times", n)
	}
}

// TestHostileOwners: whatever an owner sends or says, no wrong byte is handed out, and it is clear whose fault it was.
func TestHostileOwners(t *testing.T) {
	big := large(files.PieceBytes+1, 1)
	small := []byte("small")
	for name, c := range map[string]struct {
		in   func(*rig) jobspec.Input
		want inputs.Fault
		say  string
	}{
		"other bytes": {func(r *rig) jobspec.Input {
			b := r.owner.has(small)
			r.owner.lie[b.Hash] = 99
			return file("x", b)
		}, inputs.Refused, "other bytes than its hash says, twice"},
		"other bytes of several pieces": {func(r *rig) jobspec.Input {
			b := r.owner.has(big)
			r.owner.lie[b.Hash] = 99
			return file("x", b)
		}, inputs.Refused, "other bytes than its hash says, twice"},
		"no such blob": {func(*rig) jobspec.Input {
			return file("x", files.BlobOf(small))
		}, inputs.Refused, "no such blob"},
		"another size": {func(r *rig) jobspec.Input {
			b := r.owner.has(small)
			b.Size++
			return file("x", b)
		}, inputs.Refused, "no such blob"},
		"a hash of nothing": {func(*rig) jobspec.Input {
			return file("x", files.Blob{Hash: files.HashOf(small)})
		}, inputs.Broken, "no file of 0 bytes has that hash"},
		"no size": {func(r *rig) jobspec.Input {
			b := r.owner.has(small)
			b.Size = jobspec.UnknownSize
			return file("x", b)
		}, inputs.Broken, "says that it has -1 bytes"},
		"no hash": {func(*rig) jobspec.Input {
			return jobspec.Input{Path: "x", From: jobspec.FromURL, URL: "https://x"}
		}, inputs.Broken, "says that it has 0 bytes"},
		"no manifest": {func(r *rig) jobspec.Input {
			return jobspec.Input{Path: "x", From: jobspec.FromDirectory, Blob: r.owner.has(small)}
		}, inputs.Broken, "no manifest of files"},
		"a manifest without an end": {func(r *rig) jobspec.Input {
			b := r.owner.blobs[r.owner.manifest(r.T, map[string][]byte{"a": small}, "a").Hash]
			return jobspec.Input{Path: "x", From: jobspec.FromEach, Blob: r.owner.has(b[:len(b)-1])}
		}, inputs.Broken, "no manifest of files"},
		"a large manifest": {func(*rig) jobspec.Input {
			return jobspec.Input{
				Path: "x", From: jobspec.FromEach, Blob: files.Blob{Hash: files.Hash{1}, Size: files.MaxManifest + 1},
			}
		}, inputs.Broken, "says that it has"},
		"no file for the task": {func(r *rig) jobspec.Input {
			m := r.owner.manifest(r.T, map[string][]byte{"a": small}, "a")
			return jobspec.Input{Path: "x", From: jobspec.FromEach, Blob: m}
		}, inputs.Broken, "no file for the task of index 3"},
		"more than is lent": {func(*rig) jobspec.Input {
			return file("x", files.Blob{Hash: files.Hash{1}, Size: 1<<26 + 1})
		}, inputs.Unfit, "67.1 MB, which is what this site takes of others"},
		"a manifest of more than is lent": {func(r *rig) jobspec.Input {
			var buf bytes.Buffer
			w := files.NewManifestWriter(&buf)
			for i := range 7 {
				e := files.Entry{Path: fmt.Sprint(i), Size: 1 << 39, Hash: files.Hash{1}}
				if err := w.Add(e); err != nil {
					r.Fatal(err)
				}
			}
			_ = w.Close()
			return jobspec.Input{Path: "x", From: jobspec.FromDirectory, Blob: r.owner.has(buf.Bytes())}
		}, inputs.Unfit, "which is what this site takes of others"},
		"a kind of later": {func(r *rig) jobspec.Input {
			return jobspec.Input{Path: "x", From: 77, Blob: r.owner.has(small)}
		}, inputs.Broken, "this version does not know"},
		"may not": {func(r *rig) jobspec.Input {
			r.owner.refusal = transfer.NotAllowed
			return file("x", r.owner.has(small))
		}, inputs.Refused, "may not read that"},
		"gone": {func(r *rig) jobspec.Input {
			r.owner.refusal = transfer.Gone
			return file("x", r.owner.has(big))
		}, inputs.Refused, "has deleted it"},
		"busy": {func(r *rig) jobspec.Input {
			r.owner.refusal = transfer.Busy
			return file("x", r.owner.has(small))
		}, inputs.Away, "serves too many"},
		"down": {func(r *rig) jobspec.Input {
			r.owner.down = true
			return file("x", r.owner.has(small))
		}, inputs.Away, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			o := order(3, c.in(r))
			_, err := r.Fetch(t.Context(), o)
			if err == nil {
				t.Fatal("it has come")
			}
			if got := faultOf(t, err); got != c.want || !strings.Contains(err.Error(), c.say) {
				t.Errorf("fault %d: %v", got, err)
			}
			started := false
			_ = r.Files(t.Context(), o, func([]executor.File, int64) error {
				started = true
				return nil
			})
			if started {
				t.Error("it is handed out all the same")
			}
		})
	}
}

// TestWrongOnceIsFetchedAgain: bytes that were damaged on their way once harm nobody.
func TestWrongOnceIsFetchedAgain(t *testing.T) {
	r := newRig(t)
	for _, content := range [][]byte{[]byte("small"), large(files.PieceBytes+1, 1)} {
		b := r.owner.has(content)
		r.owner.lie[b.Hash] = 1
		if _, err := r.Fetch(t.Context(), order(0, file("x", b))); err != nil {
			t.Fatal(err)
		}
		if got := r.handed(order(0, file("x", b))); got["x"] != string(content) {
			t.Error("other bytes are handed out")
		}
	}
}

// TestFetchIsResumed: what came before a broker ended is not fetched again, and what is pinned stays until Drop.
func TestFetchIsResumed(t *testing.T) {
	r := newRig(t)
	blob := r.owner.has(large(4*files.PieceBytes, 1))
	ctx, cancel := context.WithCancelCause(t.Context())
	r.owner.gate = make(chan struct{}, 2)
	r.owner.gate <- struct{}{}
	r.owner.gate <- struct{}{}
	o := order(0, file("x", blob))
	pieces := make(chan struct{}, 100)
	o.Tell = func(what string) {
		if strings.HasPrefix(what, "staging 0 of 1 files, 16.8 MB") {
			pieces <- struct{}{}
		}
	}
	done := make(chan error)
	go func() {
		_, err := r.Fetch(ctx, o)
		done <- err
	}()
	<-pieces
	cancel(errors.New("the broker ends"))
	if err := <-done; faultOf(t, err) != inputs.Cancelled {
		t.Fatal(err)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.owner.mu.Lock()
	r.owner.gate = nil
	clear(r.owner.asked)
	r.owner.mu.Unlock()
	if _, err := r.Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n := r.owner.times(blob); n != 2 {
		t.Errorf("of 4 pieces %d are asked for again", n)
	}
	ref := store.Ref{Place: store.CacheOf("a"), Hash: blob.Hash}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r.limit.Max = blob.Size + 8192
	r.open()
	r.Repin(&attempts.Record{ID: o.ID, Inputs: []attempts.InputBlob{{Blob: blob}}})
	other := r.owner.has(large(2*files.PieceBytes, 2))
	if _, err := r.Fetch(t.Context(), order(1, file("y", other))); faultOf(t, err) != inputs.Full {
		t.Errorf("a pinned blob makes room: %v", err)
	}
	r.Drop(o.ID)
	if _, err := r.Fetch(t.Context(), order(1, file("y", other))); err != nil {
		t.Errorf("what nobody needs makes no room: %v", err)
	}
	if missing := r.store.Missing(ref.Place, ref.Hash); len(missing) != 1 {
		t.Error("both are there")
	}
}

// TestOwnerIsBackInTheMiddle: a cut is waited for as long as something has come before.
func TestOwnerIsBackInTheMiddle(t *testing.T) {
	r := newRig(t)
	r.owner.has([]byte("first"))
	m := r.owner.manifest(t, map[string][]byte{"a": large(50_000, 3)}, "a")
	waits := 0
	r.pause = func(_ context.Context, _ time.Duration) error {
		r.owner.mu.Lock()
		defer r.owner.mu.Unlock()
		if waits++; waits == 3 {
			r.owner.down = false
		}
		return nil
	}
	o := order(0, jobspec.Input{Path: "d", From: jobspec.FromDirectory, Blob: m})
	cut := false
	o.Tell = func(what string) {
		if strings.HasPrefix(what, "staging 0 of 1") && !cut { // the manifest is here
			cut, r.owner.down = true, true
			r.owner.cutAll()
		}
	}
	if _, err := r.Fetch(t.Context(), o); err != nil || waits != 3 {
		t.Errorf("after %d waits: %v", waits, err)
	}
}

// TestOwnFilesAreRead: the files of this site's own tasks are its user's, and what its store has lost fails the task.
func TestOwnFilesAreRead(t *testing.T) {
	r := newRig(t)
	b, err := r.store.Put(t.Context(), store.OwnOf("alice"), bytes.NewReader([]byte("mine")), 100)
	if err != nil {
		t.Fatal(err)
	}
	o := order(0, file("x", b))
	o.ID.Job = "b.3"
	if got := r.handed(o); got["x"] != "mine" {
		t.Errorf("%q", got)
	}
	o.Inputs[0].Blob = files.BlobOf([]byte("gone"))
	err = r.Files(t.Context(), o, func([]executor.File, int64) error { return nil })
	if faultOf(t, err) != inputs.Broken || !strings.Contains(err.Error(), "gone from this site's store") {
		t.Error(err)
	}
	o.Inputs = []jobspec.Input{file("x", b), file("x", b)}
	err = r.Files(t.Context(), o, func([]executor.File, int64) error { return nil })
	if faultOf(t, err) != inputs.Broken {
		t.Error(err)
	}
}

// TestUsersBytesStayApart: that a hash is known gives nobody another owner's bytes, though they are in the same cache.
func TestUsersBytesStayApart(t *testing.T) {
	r := newRig(t)
	b, err := r.store.Put(t.Context(), store.CacheOf("c"), bytes.NewReader([]byte("of c")), 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Fetch(t.Context(), order(0, file("x", b))); faultOf(t, err) != inputs.Refused {
		t.Errorf("a's task has c's bytes: %v", err)
	}
}

// TestSizes are told as people read them.
func TestSizes(t *testing.T) {
	var got []string
	for _, n := range []int64{0, 999, 1000, 999_499, 999_500, 1_234_567, 1 << 40, 5e15} {
		got = append(got, sizeText(n))
	}
	want := []string{"0 B", "999 B", "1 kB", "999 kB", "1 MB", "1.23 MB", "1.1 TB", "5e+03 TB"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
