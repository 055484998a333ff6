package watchdog

import (
	"runtime"
	"sync"
)

// MakeThreads has the runtime make n threads, which it keeps: where the machine has no room
// for one more, a runtime that wants one ends the program, and that would be the task's end.
// All that it has begun to make are there when it returns.
func MakeThreads(n int) {
	var met, done sync.WaitGroup
	met.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread() // one that waits and is locked needs a thread of its own
			defer runtime.UnlockOSThread()
			met.Done()
			met.Wait()
		})
	}
	done.Wait()
	// A thread that is still to come holds a part of the runtime that stopping the world waits for.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
}
