package watchdog

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// asked is set for the processes of TestNoThreadComesLate.
const asked = "CLOUDSHARE_TEST_THREADS"

// TestNoThreadComesLate: what threads a process has is known once they are made. Found by a task that could renice one
// of its guard: it was made after the guard had counted them, once in twenty runs.
func TestNoThreadComesLate(t *testing.T) {
	if os.Getenv(asked) != "" {
		MakeThreads(8)
		before := threads(t)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats) // waits for all that are being made
		if after := threads(t); after != before {
			t.Errorf("%d threads, then %d", before, after)
		}
		return
	}
	for range 20 {
		again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestNoThreadComesLate$")
		again.Env = append(os.Environ(), asked+"=1", "GORACE=atexit_sleep_ms=0")
		if said, err := again.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("PASS")) {
			t.Fatalf("%v: %s", err, said)
		}
	}
}

func threads(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
