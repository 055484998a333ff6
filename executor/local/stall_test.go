package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// freezable mounts a file system that can be frozen: what writes to it, or cuts a file,
// waits until it is thawed.
func freezable(t *testing.T) (dir string, freeze, thaw func(), ok bool) {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, args := range [][]string{
		{"truncate", "-s", "32M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Logf("no file system can be made here: %v: %v: %s", args, err, out)
			return "", nil, nil, false
		}
	}
	frozen := false
	set := func(how string, want bool) {
		if frozen == want {
			return
		}
		if out, err := exec.Command("fsfreeze", how, dir).CombinedOutput(); err != nil {
			t.Errorf("fsfreeze %s: %v: %s", how, err, out)
		}
		frozen = want
	}
	freeze, thaw = func() { set("-f", true) }, func() { set("-u", false) }
	t.Cleanup(func() {
		thaw()
		_ = exec.Command("umount", dir).Run()
	})
	return dir, freeze, thaw, true
}

// TestFenceOnAStalledDisk: a task whose output is over its bound was alive 3.9 s after
// its fence, since its supervisor waited for the disk to cut that output.
func TestFenceOnAStalledDisk(t *testing.T) {
	dir, freeze, thaw, ok := freezable(t)
	if !ok {
		return
	}
	beat := filepath.Join(t.TempDir(), "beat")
	cfg := config(t)
	cfg.Dir, cfg.MaxLogBytes = filepath.Join(dir, "handler"), 4<<10
	o, _ := adopted(t, cfg)
	t.Cleanup(thaw) // before the handler's end
	task := shell(1, `(while :; do head -c 3000 /dev/zero || exit; sleep 0.01; done) & while :; do echo x > `+beat+`; sleep 0.05; done`)
	task.Fence = executor.Boottime() + int64(12*time.Second) // far enough for its start, and its first output
	o.begin(task)
	if !eventually(patience, func() bool { st, err := os.Stat(beat); return err == nil && st.Size() > 0 }) {
		t.Fatal("the task does not run")
	}
	// Its supervisor finds the output over its bound, and the disk stalled.
	s := o.slotOf(task)
	signal := func(sig unix.Signal) {
		if err := unix.Kill(s.pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(unix.SIGSTOP)
	if !eventually(patience, func() bool {
		st, err := os.Stat(filepath.Join(s.dir, "stdout"))
		return err == nil && st.Size() > cfg.MaxLogBytes
	}) {
		t.Error("the task writes nothing")
	}
	freeze()
	signal(unix.SIGCONT)
	<-time.After(time.Duration(task.Fence-executor.Boottime()) + 100*time.Millisecond)
	dead := func() bool {
		was, err := os.Stat(beat)
		<-time.After(500 * time.Millisecond)
		is, ierr := os.Stat(beat)
		return err == nil && ierr == nil && was.ModTime().Equal(is.ModTime())
	}
	if !dead() {
		t.Error("it is alive after its fence")
	}
	fence := time.Now().Add(time.Duration(task.Fence - executor.Boottime()))
	if st, err := os.Stat(beat); err == nil && st.ModTime().After(fence) {
		t.Errorf("its last sign of life is %s after its fence", st.ModTime().Sub(fence))
	}
	thaw()
	if r := o.end(task); r.Cause != executor.Fenced {
		t.Errorf("got %+v, want Fenced", r)
	}
}

// eventually looks again and again whether that is so.
func eventually(within time.Duration, cond func() bool) bool {
	for late := time.Now().Add(within); time.Now().Before(late); <-time.After(10 * time.Millisecond) {
		if cond() {
			return true
		}
	}
	return false
}
