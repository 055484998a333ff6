package daemon

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// spareHeap is how much garbage a broker lets come together, in bytes, beyond as much as it keeps. An idle one keeps
// some 3 MiB: by the runtime's rule alone it would be collected after each 3 MiB, at thousands of submissions a second
// many times a second, for a tenth of its processor time. More than this gained nothing: what is written to next is no
// longer in the processor's cache then.
const spareHeap = 32 << 20

// collectSeldom has the heap of a small broker be collected less often, until release is called. The runtime counts
// what it is given here as kept and lets as much garbage come together; nobody writes to it, so it takes no memory of
// the machine. A percentage (GOGC) would multiply the memory of a large one. Whoever has set GOGC or GOMEMLIMIT has
// decided otherwise.
func collectSeldom() (release func()) {
	if _, told := os.LookupEnv("GOGC"); told || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	spare := make([]byte, spareHeap)
	return func() { runtime.KeepAlive(&spare[0]) }
}
