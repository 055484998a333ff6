package replay_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
	"github.com/cloudshare/cloudshare/node/replica"
)

// restart ends the broker and starts it again, as one whose log has all entries, or those behind its last snapshot.
func (f *federation) restart(crash func(), snapshot bool) {
	f.t.Helper()
	s, err := f.replica.Snapshot()
	if err != nil {
		f.t.Fatal(err)
	}
	entries := f.entries
	f.close()
	crash()
	f.open(64 << 20)
	f.entries = nil
	if !snapshot {
		for _, entry := range entries {
			f.apply(entry)
		}
		return
	}
	path := filepath.Join(f.t.TempDir(), "snapshot")
	out, err := os.Create(path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	if err = s.Write(out); err == nil {
		_, err = out.Seek(0, 0)
	}
	if err == nil {
		err = f.replica.Restore(out)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// files returns the segments' names.
func (f *federation) files() []string {
	f.t.Helper()
	all, err := filepath.Glob(filepath.Join(f.dir, "*.history"))
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// A broker that starts again goes on with what it has kept, whether its log begins at the founding or with a snapshot
// of now, and whether a crash has cut the last record or some.
func TestKeepingGoesOnAfterARestart(t *testing.T) {
	cut := func(f *federation, bytes int64) func() {
		return func() {
			all := f.files()
			st, err := os.Stat(all[len(all)-1])
			if err == nil {
				err = os.Truncate(all[len(all)-1], st.Size()-bytes)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		lost     int64 // bytes
		snapshot bool
		gaps     int
	}{
		"from the founding":                      {0, false, 0},
		"from a snapshot":                        {0, true, 0},
		"half a record is lost":                  {3, false, 0},
		"some records are lost":                  {500, false, 0},
		"some are lost, and a snapshot has them": {500, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFederation(t, 64<<20)
			f.idle(30)
			f.job("site-2")
			f.restart(cut(f, c.lost), c.snapshot)
			f.job("site-3")
			f.idle(90)
			f.close()
			r := f.verify(f.dir, replay.Options{})
			index, hash := f.replica.Hash()
			if r.Difference != nil || r.End.Entry != index || r.End.State != hexOf(hash[:]) || len(r.Gaps) != c.gaps ||
				f.keeper.Gaps() != uint64(c.gaps) || len(r.Signed.SignedBy) != 3 {
				t.Errorf("%v, end %d of %d, gaps %v, signed %v", r.Difference, r.End.Entry, index, r.Gaps, r.Signed)
			}
		})
	}
}

// What is kept stays within its bound, the oldest goes first, and what is left can be gone through, by itself and as an
// exported file.
func TestKeepingIsBounded(t *testing.T) {
	const bound = 1 << 20
	f := newFederation(t, bound)
	for range 400 {
		f.orderJunk()
		if f.keeper.Bytes() > bound {
			t.Fatalf("%d bytes are kept, the bound is %d", f.keeper.Bytes(), bound)
		}
	}
	f.job("site-2")
	f.idle(45)
	f.close()
	if n := len(f.files()); n < 2 || n > 8 {
		t.Fatalf("%d segments", n)
	}
	r := f.verify(f.dir, replay.Options{})
	index, _ := f.replica.Hash()
	if r.Difference != nil || r.Begin.Entry == 0 || len(r.Begin.SignedBy) != 3 || r.End.Entry != index ||
		len(r.Gaps) > 0 || f.keeper.Gaps() > 0 {
		t.Fatalf("%v, begin %+v, end %d of %d, gaps %v", r.Difference, r.Begin, r.End.Entry, index, r.Gaps)
	}
	whole := f.verify(writeFile(t, f.export(0, 0)), replay.Options{})
	part := f.verify(writeFile(t, f.export(index-20, index-5)), replay.Options{})
	if whole.Difference != nil || whole.Entries != r.Entries || whole.End.State != r.End.State {
		t.Errorf("whole: %v, %d entries", whole.Difference, whole.Entries)
	}
	if part.Difference != nil || part.End.Entry != index-5 || part.Begin.Entry >= index-20 ||
		part.Entries >= r.Entries {
		t.Errorf("part: %v, from %d to %d", part.Difference, part.Begin.Entry, part.End.Entry)
	}
	err := (&history.Export{From: index + 1}).Write(f.source(f.dir), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not kept") {
		t.Errorf("behind the last entry: %v", err)
	}
}

// orderJunk has an entry ordered that all refuse, of 8000 bytes.
func (f *federation) orderJunk() {
	f.t.Helper()
	f.order()
	f.apply([]byte(strings.Repeat("x", 8000)))
}

// A broker does not wait for a disk: what that does not take is a gap. Nor does it fill one that its log needs.
func TestADiskThatFailsIsAGap(t *testing.T) {
	for name, cfg := range map[string]history.Config{
		"the state does not fit": {MaxBytes: 1}, "little is free": {MaxBytes: 64 << 20, MinFree: 1 << 60},
	} {
		f := newFederation(t, 64<<20)
		f.close()
		cfg.Dir, cfg.Logger = t.TempDir(), zerolog.New(zerolog.NewTestWriter(t))
		k, err := history.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		f.replica = replica.NewReplica()
		f.replica.KeepHistory(k)
		for _, entry := range f.entries {
			if _, err := f.replica.Apply(entry); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Close(); err != nil || k.Gaps() == 0 || k.Bytes() > 1 {
			t.Errorf("%s: %v, %d gaps, %d bytes", name, err, k.Gaps(), k.Bytes())
		}
	}
}

// An entry of another history, or one that no reader would take, ends what is kept.
func TestAnotherHistoryIsAGap(t *testing.T) {
	for name, entry := range map[string]struct {
		number uint64
		before replica.Chain
		bytes  int
	}{
		"another chain": {2, replica.Chain{9}, 1}, "later on": {3, replica.Chain{1}, 1}, "the same number": {1, replica.Chain{}, 1},
		"too large": {2, replica.Chain{1}, command.MaxBatch + 1},
	} {
		f := &federation{t: t, dir: t.TempDir()}
		f.open(64 << 20)
		s, err := f.replica.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if !f.keeper.Checkpoint(0, 7) {
			t.Fatal("the first state is not wanted")
		}
		f.keeper.Begin(0, replica.Chain{}, s)
		f.keeper.Append(1, replica.Chain{}, replica.Chain{1}, []byte("a"))
		f.keeper.Append(entry.number, entry.before, replica.Chain{2}, make([]byte, entry.bytes))
		if f.keeper.Gaps() != 1 || !f.keeper.Checkpoint(entry.number, 7) {
			t.Errorf("%s: %d gaps", name, f.keeper.Gaps())
		}
		f.close()
	}
}

// A data_dir without a history says what to do.
func TestNoHistory(t *testing.T) {
	if _, err := history.OpenSource(t.TempDir()); err == nil || !strings.Contains(err.Error(), "history.max_bytes") {
		t.Error(err)
	}
	for _, b := range []string{"", "cloudshare history 2\n{}\n", "cloudshare history 1\n{}\n", "cloudshare history 1\n{\n"} {
		src, err := history.OpenSource(writeFile(t, []byte(b)))
		if err == nil {
			_, err = replay.Verify(t.Context(), src, replay.Options{})
			_ = src.Close()
		}
		if err == nil || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// A pipe is refused at once: to open it waited for whoever writes it, and nothing ended that.
func TestAPipeIsNoHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := history.OpenSource(path); !errors.Is(err, history.ErrFormat) || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}
