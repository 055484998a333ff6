package cli

import (
	"context"
	"sync"
	"sync/atomic"
)

// InParallel calls do with 0 to n-1, at most so many at once, and returns the first error: behind it nothing begins,
// and what runs is interrupted.
func InParallel(ctx context.Context, n, most int, do func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, most) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					stop(err) // only the first is kept
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
