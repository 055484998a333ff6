package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// lost has the disk lose all files of blobs that are in the log, as a machine that crashes does.
func (r *rig) lost() (n int) {
	r.Helper()
	r.log.await()
	for k := range r.log.keys {
		if err := os.Remove(filepath.Join(r.dir, fileOf(k))); err != nil {
			r.Fatal(err)
		}
		n++
	}
	return n
}

// TestSmallBlobsSurviveACrash: they are not synced, and there all the same; those that went stay away.
func TestSmallBlobsSurviveACrash(t *testing.T) {
	r := testRig(t)
	r.log.wiped = r.clock // so that Collect leaves what it has
	synced := 0
	r.fault = func(p point) error {
		if p == pointSync {
			synced++
		}
		return nil
	}
	r.put(own, "")
	r.put(own, "input")
	r.put(own, "gone")
	r.put(out, "result")
	r.Pin("attempt", ref(out, "gone, too"))
	r.put(out, "gone, too")
	r.Unpin("attempt")
	if _, _, err := r.Collect(); err != nil {
		t.Fatal(err)
	}
	if err := r.Withdraw(r.clock, ref(own, "gone")); err != nil {
		t.Fatal(err)
	}
	r.put(own, "last")
	if n := r.lost(); n != 4 || synced != 0 {
		t.Errorf("%d blobs are in the log, want 4; %d were synced, want none", n, synced)
	}
	r.boot = "second"
	r.reopen()
	for content, at := range map[string]Place{"": own, "input": own, "result": out, "last": own} {
		r.want(at, content)
	}
	r.wantNone(own, "gone")
	r.wantNone(out, "gone, too")
	r.log.await()
	if !r.log.file.Empty() {
		t.Error("the log was not emptied")
	}
	r.wantWhole("behind the crash")
}

// TestRemovedBlobsAreWiped: behind a look of Collect no byte of what went is in the log, and what stays is durable.
func TestRemovedBlobsAreWiped(t *testing.T) {
	r := testRig(t)
	r.put(own, "stays")
	r.put(out, "a secret")
	r.Pin("attempt", ref(out, "a secret"))
	r.Unpin("attempt")
	inLog := func() bool {
		b, err := os.ReadFile(filepath.Join(r.dir, logFile))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(b), "a secret")
	}
	if !inLog() {
		t.Fatal("it was not in the log")
	}
	if _, _, err := r.Collect(); err != nil {
		t.Fatal(err)
	}
	r.log.await()
	if inLog() || r.lost() != 0 {
		t.Error("the log has some yet")
	}
	r.put(own, "later")
	r.lost()
	r.reopen()
	r.want(own, "stays")
	r.want(own, "later")
}

// TestRestoredBlobsAreAsOld: what comes back from the log is used no later than it was.
func TestRestoredBlobsAreAsOld(t *testing.T) {
	r := testRig(t)
	r.put(own, "old")
	r.lost()
	r.clock = r.clock.Add(roomy().Own.Keep)
	r.reopen()
	r.Repin(noPins)
	if n, _, err := r.Collect(); n != 1 || err != nil {
		t.Errorf("%d blobs went, want 1: %v", n, err)
	}
}

// TestBlobPutAgainIsNotSyncedAgain: content that is there takes no sync of its own.
func TestBlobPutAgainIsNotSyncedAgain(t *testing.T) {
	r := testRig(t)
	large := text("large", logMost+1)
	r.put(own, large)
	r.put(own, "small")
	r.fault = func(p point) error {
		if p == pointSync || p == pointFolder || p == pointLog {
			return fmt.Errorf("%s once more", p)
		}
		return nil
	}
	r.put(own, large)
	r.put(own, "small")
}

// TestFullLogIsEmptied: whatever the log has room for, all blobs are there behind a crash, and it takes new ones again.
func TestFullLogIsEmptied(t *testing.T) {
	r := testRig(t)
	emptied, logged := 0, 0
	r.fault = func(p point) error {
		if p == pointReset { // one is put at a time, so one writes at a time
			emptied++
		}
		if p == pointLog {
			logged++
		}
		return nil
	}
	name := func(i int) string { return text(fmt.Sprint("blob ", i, " "), shortLog/3) }
	for i := range 20 {
		r.put(own, name(i))
		r.log.await()
	}
	if emptied < 4 || logged < 15 {
		t.Errorf("the log was emptied %d times and written %d times", emptied, logged)
	}
	r.lost()
	r.reopen()
	for i := range 20 {
		r.want(own, name(i))
	}
}

// TestLogThatFails: without it each blob is synced by itself, and what it had is there.
func TestLogThatFails(t *testing.T) {
	for _, fails := range []point{pointLog, pointSyncAll, pointReset} {
		r := testRig(t)
		r.put(own, "before")
		synced := 0
		r.fault = func(p point) error {
			if p == fails {
				return syscall.EIO
			}
			if p == pointSync {
				synced++
			}
			return nil
		}
		r.put(own, text("full", shortLog))
		r.log.await()
		r.put(own, "behind")
		if synced < 1 {
			t.Errorf("%s: nothing was synced", fails)
		}
		r.fault = nil
		r.lost()
		r.reopen()
		for _, content := range []string{"before", text("full", shortLog), "behind"} {
			r.want(own, content)
		}
		r.put(own, "again")
		if r.log.state != logOpen || r.lost() != 1 {
			t.Errorf("%s: the next start does not write it", fails)
		}
		r.reopen()
		r.want(own, "again")
	}
}

// TestWhatMemoryHasIsWrittenAgain: behind a failed sync the system says of pages that the disk lacks that they are
// clean: what the log has is written again, though its file reads well, and keeps its time.
func TestWhatMemoryHasIsWrittenAgain(t *testing.T) {
	r := testRig(t)
	r.put(own, "small")
	path := filepath.Join(r.dir, fileOf(ref(own, "small")))
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	r.clock = r.clock.Add(time.Hour)
	r.reopen()
	after, err := os.Stat(path)
	if err != nil || os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("it is the same file, or of %v, before %v: %v", after.ModTime(), before.ModTime(), err)
	}
	r.want(own, "small")
}

// TestStartOnAFullDisk: what is there stays so, and in the log.
func TestStartOnAFullDisk(t *testing.T) {
	r := testRig(t)
	r.put(own, "small")
	r.fault = func(p point) error {
		if p == pointCreate {
			return syscall.ENOSPC
		}
		return nil
	}
	r.reopen()
	r.want(own, "small")
	r.fault = nil
	r.lost()
	if err := os.Remove(filepath.Join(r.dir, fileOf(ref(own, "small")))); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.want(own, "small")
}

// TestLogThatCannotBeMade: it is made later.
func TestLogThatCannotBeMade(t *testing.T) {
	r := testRig(t)
	if err := os.Mkdir(filepath.Join(r.dir, logFile+".new"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.put(own, "by itself")
	if err := os.Remove(filepath.Join(r.dir, logFile+".new")); err != nil {
		t.Fatal(err)
	}
	r.put(own, "yet")
	if n := r.lost(); n != 0 {
		t.Errorf("%d blobs are in a log that was not there", n)
	}
	r.clock = r.clock.Add(retryEvery)
	r.put(own, "later")
	if n := r.lost(); n != 1 {
		t.Errorf("%d blobs are in the log, want the last", n)
	}
	r.reopen()
	for _, content := range []string{"by itself", "yet", "later"} {
		r.want(own, content)
	}
}

// TestDamagedLogIsSaid: nobody goes on without it unless he says so.
func TestDamagedLogIsSaid(t *testing.T) {
	r := testRig(t)
	r.put(own, "small")
	path := filepath.Join(r.dir, logFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[3] ^= 1
	if err = os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = r.Store.disk.close()
	if _, err = Open(r.opts); !errors.Is(err, walfile.ErrDamaged) || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("got %v", err)
	}
	if err = os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.want(own, "small")
}

// TestGroupsOfSmallBlobs: many at a time share the log's writes, and each is told of its own.
func TestGroupsOfSmallBlobs(t *testing.T) {
	r := testRig(t)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			content := text(fmt.Sprint(i, "-"), 40+i)
			if b, err := r.Put(context.Background(), own, strings.NewReader(content), files.MaxFile); err != nil ||
				b != files.BlobOf([]byte(content)) {
				t.Error(b, err)
			}
		})
	}
	all.Wait()
	r.lost()
	r.reopen()
	for i := range 64 {
		r.want(own, text(fmt.Sprint(i, "-"), 40+i))
	}
}

// FuzzLog: no record makes the decoder take what is no blob.
func FuzzLog(f *testing.F) {
	put := []*logged{{key: ref(own, "content"), content: []byte("content"), put: moment}}
	f.Add(encodeLog([]key{ref(out, "gone")}, put))
	f.Add([]byte{itemKept, 0, 200})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _ := decodeLog([][]byte{b})
		for _, w := range list {
			if files.HashOf(w.content) != w.Hash || w.check() != nil || w.Space == Cache {
				t.Errorf("%v", w.key)
			}
		}
	})
}
