// Package parallel does work of many small parts on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f with each number below n, on as many processors as there are, and returns when all calls have.
func Each(n int, f func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(i)
		}
	}
	var others sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}
