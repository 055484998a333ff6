package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// mustCommit commits writes that have to succeed.
func mustCommit(t *testing.T, j *Journal, writes ...Write) {
	t.Helper()
	if err := j.Commit(writes); err != nil {
		t.Fatal(err)
	}
}

// value reads what has to be readable.
func value(t *testing.T, j *Journal, b Bucket, k []byte) []byte {
	t.Helper()
	v, err := j.Get(b, k)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestStoppedBehindACommit: a process that was killed when bbolt had the changes, and
// the write-ahead file was not made void yet, finds the commit whole: what the file
// holds is older than what came behind it.
func TestStoppedBehindACommit(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	j := open(t, dir, 0)
	defer j.Close()
	mustCommit(t, j, Put(jobs, key(1), []byte("waits")))
	before, err := os.ReadFile(filepath.Join(dir, "x.wal"))
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, j, Delete(jobs, key(1)), Put(rows, key(2), make([]byte, directBytes)))
	copyFiles(t, dir, killed)
	if err = os.WriteFile(filepath.Join(killed, "x.wal"), before, 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, killed, 0)
	defer again.Close()
	if job, row := value(t, again, jobs, key(1)), value(t, again, rows, key(2)); job != nil || row == nil {
		t.Errorf("half a commit: what was deleted is %q, what was put has %d bytes", job, len(row))
	}
}

// TestFailsForGood: behind a write that failed, to whichever file, nothing is
// acknowledged: what a restart finds is not known.
func TestFailsForGood(t *testing.T) {
	small := []Write{Put(jobs, key(1), []byte("t"))}
	large := []Write{Put(jobs, key(2), make([]byte, directBytes))}
	for name, breakFile := range map[string]func(*Journal) error{
		"write-ahead file": func(j *Journal) error { return j.wal.Close() },
		"bbolt":            func(j *Journal) error { return j.db.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, dir, 0)
			mustCommit(t, j, small...)
			if err := breakFile(j); err != nil {
				t.Fatal(err)
			}
			first := j.Commit(large)
			if first == nil {
				t.Fatal("a failed write was acknowledged")
			}
			for what, err := range map[string]error{
				"small": j.Commit(small), "large": j.Commit(large), "range": j.DeleteRange(jobs, key(1), key(1)),
				"each": j.Each(jobs, func(_, _ []byte) error { return nil }),
			} {
				if err == nil {
					t.Errorf("%s: succeeded behind a write that failed", what)
				}
			}
			_ = j.Close() // says what failed
			again := open(t, dir, 0)
			defer again.Close()
			if got := value(t, again, jobs, key(1)); string(got) != "t" {
				t.Errorf("what was acknowledged is %q", got)
			}
		})
	}
}

// TestFilesBelongTogether: a write-ahead file that is missing, or of another moment
// than the rest, is an error: the newest records are gone.
func TestFilesBelongTogether(t *testing.T) {
	dir, older := t.TempDir(), t.TempDir()
	for n := range uint64(3) {
		j := open(t, dir, 0)
		mustCommit(t, j, Put(jobs, key(n), []byte("x")))
		if n == 0 {
			copyFiles(t, dir, older)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(older, "x.wal")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(options(older, 0)); !IsDamaged(err) {
		t.Errorf("without the newest records: %v", err)
	}
	if err := os.Rename(filepath.Join(dir, "x.wal"), filepath.Join(older, "x.wal")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(options(older, 0)); !IsDamaged(err) {
		t.Errorf("with those of another moment: %v", err)
	}
}

// TestDamagedPages: pages that are damaged before the start or while the process runs
// are an error that names the file, not a panic of bbolt.
func TestDamagedPages(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, 0)
	for n := range uint64(40) {
		mustCommit(t, j, Put(rows, key(n), make([]byte, 4<<10)))
	}
	if _, _, err := j.Bounds(rows); err != nil { // all of it is in bbolt now
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "x.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	heads := 2 * os.Getpagesize()
	if _, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, int(info.Size())-heads), int64(heads)); err != nil {
		t.Fatal(err)
	}
	_, err = j.Get(rows, key(1))
	_ = j.Close() // may say it, too
	_, opened := Open(options(dir, 0))
	for what, err := range map[string]error{"a read": err, "a start": opened} {
		if !IsDamaged(err) || !strings.Contains(err.Error(), "x.db") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with the file", what, err)
		}
	}
}

// TestReadsWaitForNoWrite: a write that does not return stops neither Get nor Close,
// and Stalled tells of it.
func TestReadsWaitForNoWrite(t *testing.T) {
	j := open(t, t.TempDir(), 0)
	mustCommit(t, j, Put(jobs, key(1), []byte("one")))
	entered, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- j.Commit([]Write{{Bucket: jobs, Key: key(2), Merge: func([]byte) []byte {
			close(entered)
			<-release
			return []byte("two")
		}}})
	}()
	<-entered
	if got := value(t, j, jobs, key(1)); string(got) != "one" {
		t.Errorf("read %q", got)
	}
	if err := j.Stalled(time.Now(), time.Minute); err != nil || j.Pending() != 1 {
		t.Errorf("at once: %v", err)
	}
	if err := j.Stalled(time.Now().Add(2*time.Minute), time.Minute); !errors.Is(err, ErrStalled) ||
		!strings.Contains(err.Error(), "x.db") {
		t.Errorf("after two minutes: %v", err)
	}
	if err := j.Close(); !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "end the process") {
		t.Errorf("close: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("close, with the disk back: %v", err)
	}
	if err := j.Commit([]Write{Put(jobs, key(3), nil)}); !errors.Is(err, errClosed) {
		t.Errorf("a write behind the end: %v", err)
	}
}

// TestCloseWaitsForNoHangingDisk: the newest changes go to bbolt at the end; a disk
// that hangs then does not hold the process.
func TestCloseWaitsForNoHangingDisk(t *testing.T) {
	j := open(t, t.TempDir(), 0)
	j.writing.Lock() // nothing is written
	err := j.closeWithin(time.Millisecond)
	j.writing.Unlock()
	if !errors.Is(err, ErrStalled) {
		t.Errorf("close: %v", err)
	}
	if err = j.Close(); err != nil {
		t.Errorf("with the disk back: %v", err)
	}
}

// TestRefusedRecord: a record that does not encode is the error of its Commit.
func TestRefusedRecord(t *testing.T) {
	j := open(t, t.TempDir(), 0)
	defer j.Close()
	if err := j.Commit([]Write{{Bucket: jobs, Key: key(1), Record: func() {}}}); err == nil {
		t.Error("a function was encoded")
	}
}

func FuzzReplayRecord(f *testing.F) {
	f.Add(appendChanges(nil, []change{{place{1, "k"}, []byte("v")}, {place{2, "k"}, nil}}))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = replay(b, 3, map[place][]byte{})
	})
}

// TestDeletionOfManyPages: a deletion takes as long as what it deletes is, not that
// squared: nothing else is written meanwhile, and raft's leader must write on.
func TestDeletionOfManyPages(t *testing.T) {
	const keys = 12_000
	j := open(t, t.TempDir(), 0)
	defer j.Close()
	writes := make([]Write, keys)
	for i := range writes {
		writes[i] = Put(rows, key(uint64(i)), make([]byte, 2500)) // one a page
	}
	began := processorTime(t)
	mustCommit(t, j, writes...)
	written := processorTime(t)
	if err := j.DeleteRange(rows, key(0), key(keys-2)); err != nil {
		t.Fatal(err)
	}
	// It takes a tenth of the processor time of writing them; squared, it was from half of that to twice.
	if wrote, took := written-began, processorTime(t)-written; took > wrote/3 {
		t.Errorf("it took %s, writing took %s", took, wrote)
	}
	first, last, err := j.Bounds(rows)
	if err != nil || !bytes.Equal(first, key(keys-1)) || !bytes.Equal(last, first) {
		t.Errorf("from %x to %x are left, %v", first, last, err)
	}
}

// processorTime is what this process has used: neither the disk nor what else the machine does adds to it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
