package outputs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk: the store says that it cannot take outputs, loses none that it has, and
// takes them again when there is room. The process's own limit of a file's size stands
// for the disk's: writes are cut off in the middle. It holds in a process of its own, as
// go test has one that writes a log.
func TestFullDisk(t *testing.T) {
	if os.Getenv("FULL_DISK") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
		cmd.Env = append(os.Environ(), "FULL_DISK=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s := openShelf(t, configAt(t.TempDir()))
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(bytes uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
	}
	limit(64 << 10)
	defer limit(before.Cur)
	var err error
	kept := 0
	for err == nil && kept < 1000 {
		if err = s.Put([]Item{item(kept, fmt.Sprint(kept, strings.Repeat("x", 5000)), "")}); err == nil {
			kept++
		}
	}
	if !errors.Is(err, unix.EFBIG) || !strings.Contains(s.Stats().Trouble, "file too large") {
		t.Fatalf("after %d outputs: %v, trouble %q", kept, err, s.Stats().Trouble)
	}
	s.reopen()
	limit(before.Cur)
	s.put(item(kept, "the next", ""))
	if got := s.read(kept, 0); got != "the next" || s.Stats().Trouble != "" {
		t.Errorf("the next one: %q, trouble %q", got, s.Stats().Trouble)
	}
	for n := range kept {
		if !strings.HasPrefix(s.read(n, 0), fmt.Sprint(n, "x")) {
			t.Errorf("task %d is lost", n)
		}
	}
}
