package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
)

// TestFullDiskTakesTheCacheFirst: what a write or a reservation of a partial blob finds full has unpinned blobs of the
// cache go, the least recently used first, and what is pinned stays.
func TestFullDiskTakesTheCacheFirst(t *testing.T) {
	puts := 0
	for name, write := range map[string]func(*rig) error{
		"put": func(r *rig) error {
			puts++ // what is there already is not written
			_, err := r.Put(t.Context(), out, strings.NewReader(text("result", 10+puts)), 100)
			return err
		},
		"begin": func(r *rig) error {
			r.Store.piece = 2
			p, err := r.Begin(cached, files.BlobOf([]byte("input")))
			if err != nil {
				return err
			}
			return p.Abandon()
		},
	} {
		r := testRig(t)
		r.put(cached, "old")
		r.put(cached, "pinned")
		r.clock = r.clock.Add(1)
		r.put(cached, "new")
		r.Pin("attempt", ref(cached, "pinned"))
		r.fault = func(p point) error {
			_, gone := os.Stat(filepath.Join(r.dir, fileOf(ref(cached, "old"))))
			if (p == pointWrite || p == pointAllocate) && gone == nil {
				return syscall.ENOSPC
			}
			return nil
		}
		if err := write(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.fault = nil
		r.wantNone(cached, "old")
		r.want(cached, "pinned")
		r.want(cached, "new")

		r.fault = func(p point) error { // nothing helps
			if p == pointWrite || p == pointAllocate {
				return syscall.ENOSPC
			}
			return nil
		}
		r.Pin("another", ref(cached, "new"))
		if err := write(r); !errors.Is(err, ErrFull) {
			t.Errorf("%s: with nothing that may go: %v", name, err)
		}
		r.fault = nil
		r.want(cached, "new")
	}
}

// TestEvictIsBounded: a step removes so many blobs at most, and nothing before it is known what is pinned.
func TestEvictIsBounded(t *testing.T) {
	r := testRig(t)
	for i := range maxCollected + 10 {
		r.put(cached, text("x", i))
	}
	r.reopen()
	if freed, err := r.Evict(1 << 40); freed != 0 || err != nil {
		t.Errorf("before the pins are said: %d, %v", freed, err)
	}
	r.Repin(noPins)
	for _, want := range []int64{maxCollected, 10, 0} {
		if freed, err := r.Evict(1 << 40); freed != want*block || err != nil {
			t.Errorf("%d bytes go, %v; want %d blobs", freed, err, want)
		}
	}
}

// TestPromisesTogether: two that fit one by one do not fit together, in a space and on the disk; a blob that both wait
// for counts once; what has come counts as used, and what ends makes room, once.
func TestPromisesTogether(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{Max: 9 * block}, Limit{Max: 9 * block}, Limit{Max: 9 * block}))
	t.Cleanup(func() { _ = r.Close() })
	one, two := files.BlobOf([]byte(text("one", 5*block))), files.BlobOf([]byte(text("two", 5*block)))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	short := func(err error, words string) {
		t.Helper()
		if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), words) {
			t.Errorf("it says %v, want %q", err, words)
		}
	}
	must(r.Reserve("attempt/1", cached, []files.Blob{one}, Unbounded))
	short(r.Reserve("attempt/2", cached, []files.Blob{two}, Unbounded), "36864 are left of data.cache, 20480 of them promised")
	must(r.Reserve("attempt/2", cached, []files.Blob{one}, Unbounded))
	must(r.ReserveBytes("out/1", Outgoing, 5*block, Unbounded))
	must(r.ReserveBytes("out/1", Outgoing, 5*block, 0)) // it has it
	short(r.ReserveBytes("out/2", Outgoing, 5*block, Unbounded), "36864 are left of data.outgoing, 20480 of them promised")
	short(r.ReserveBytes("out/2", Outgoing, 4*block, 13*block), "the disk has 53248 above min_free, 40960 of them promised")
	must(r.ReserveBytes("out/2", Outgoing, 3*block, 13*block))

	r.put(cached, text("one", 5*block))
	b := r.put(out, text("left", 2*block))
	r.Pin("out/1", Ref{out, b.Hash})
	if c, o := r.Promised(Cache), r.Promised(Outgoing); c != 0 || o != 6*block {
		t.Errorf("%d and %d bytes are promised", c, o)
	}
	for range 2 {
		r.Release("out/1")
		r.Release("out/2")
		r.Unpin("attempt/1")
		r.Unpin("attempt/2")
	}
	if c, o := r.Promised(Cache), r.Promised(Outgoing); c != 0 || o != 0 {
		t.Errorf("%d and %d bytes are promised in the end", c, o)
	}
	must(r.Reserve("attempt/3", cached, []files.Blob{two}, block)) // what nobody has pinned goes for it
	r.wantNone(cached, text("one", 5*block))
	for free, want := range map[int64][2]int64{
		0: {0, 2 * block}, Unbounded: {7 * block, 9 * block}, 3 * block: {3 * block, 5 * block}, -block: {0, block},
	} {
		if now, ever := r.Room(free, 0); now != want[0] || ever != want[1] { // 2 of 9 blocks wait for their owner
			t.Errorf("with %d free there is room for %d, and ever for %d, want %v", free, now, ever, want)
		}
	}
}

// TestPromiseOfNothingTakesNothing: a task whose inputs are here already makes none of the others' go, though more was
// promised than the disk has now.
func TestPromiseOfNothingTakesNothing(t *testing.T) {
	r := testRig(t)
	here := r.put(cached, "here")
	r.put(cached, "another's")
	r.KeepBytes("out/1", Own, 9*block)
	if err := r.Reserve("attempt/1", cached, []files.Blob{here}, 8*block); err != nil {
		t.Fatal(err)
	}
	r.want(cached, "another's")
}

// TestShortSaysWhatLacks: less goes for who is told how much there is no room for.
func TestShortSaysWhatLacks(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{Max: 9 * block}, Limit{Max: 9 * block}, Limit{Max: 9 * block}))
	t.Cleanup(func() { _ = r.Close() })
	r.KeepBytes("out/1", Outgoing, 3*block)
	for free, want := range map[int64]int64{Unbounded: 2 * block, 5 * block: 6 * block} {
		var short *ShortError
		if err := r.ReserveBytes("out/2", Outgoing, 8*block, free); !errors.As(err, &short) || short.Lacks != want {
			t.Errorf("with %d free: %v, it lacks %+v, want %d", free, err, short, want)
		}
	}
}

// TestHeldBy: in blocks, and only what nobody else has pinned.
func TestHeldBy(t *testing.T) {
	r := testRig(t)
	r.put(out, "one")
	r.put(out, "two")
	r.Pin("out/1", ref(out, "one"), ref(out, "two"), ref(out, "not here"))
	r.Pin("out/2", ref(out, "two"))
	for names, want := range map[[2]string]int64{{"out/1"}: block, {"out/2"}: 0, {"out/1", "out/2"}: 2 * block} {
		if got := r.HeldBy(names[0], names[1]); got != want {
			t.Errorf("%q hold %d bytes, want %d", names, got, want)
		}
	}
}

// TestFitsAsReserve: of what is asked for what is there already, and may go, makes no room for the rest, neither when
// it is reserved nor when it is asked whether it would fit now: else who waits for room tries in vain each second.
func TestFitsAsReserve(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{Max: 9 * block}, Limit{Max: 9 * block}, Limit{Max: 9 * block}))
	t.Cleanup(func() { _ = r.Close() })
	here := r.put(cached, text("here", 3*block))
	r.put(cached, text("pinned", 3*block))
	r.Pin("attempt/1", ref(cached, text("pinned", 3*block)))
	both := []files.Blob{here, files.BlobOf([]byte(text("to come", 5*block)))}
	for _, x := range []struct {
		name   string
		change func()
	}{
		{"it is there", func() {}},
		{"it is pinned", func() { r.Pin("attempt/2", Ref{cached, here.Hash}) }},
		{"it has gone", func() { r.Unpin("attempt/2"); _, _ = r.Evict(block) }},
	} {
		x.change()
		var short *ShortError
		err := r.Reserve("attempt/3", cached, both, Unbounded)
		if !errors.As(err, &short) || r.Fits(short, Unbounded) {
			t.Errorf("%s: reserved: %v, and it would fit", x.name, err)
		}
	}
	var short *ShortError
	errors.As(r.Reserve("attempt/3", cached, both, Unbounded), &short)
	r.Unpin("attempt/1")
	if !r.Fits(short, Unbounded) || r.Reserve("attempt/3", cached, both, Unbounded) != nil {
		t.Error("it does not fit once there is room")
	}
}

// TestOwnPromisesEndAtTheirQuota: an own task that may leave more than its quota has left takes no more of the disk
// than that from others' tasks.
func TestOwnPromisesEndAtTheirQuota(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{Max: 9 * block}, Limit{Max: 9 * block}, Limit{Max: 9 * block}))
	t.Cleanup(func() { _ = r.Close() })
	r.put(OwnOf("alice"), text("result", 2*block))
	r.KeepBytes("out/own", Own, 3<<40)
	if err := r.ReserveBytes("out/1", Outgoing, 5*block, 12*block); err != nil {
		t.Errorf("7 of 12 blocks are for own results: %v", err)
	}
	if err := r.ReserveBytes("out/2", Outgoing, block, 12*block); !errors.Is(err, ErrFull) {
		t.Errorf("nothing is left of the disk: %v", err)
	}
}
