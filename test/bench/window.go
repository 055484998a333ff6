package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// countInWindow has n clients call do again and again for about d, and returns
// how many units a second they finished. do returns the units of one call. A
// call under way at the end is waited for and counts, and so does its time.
func countInWindow(ctx context.Context, n int, d time.Duration, do func(client int) (int, error)) (float64, error) {
	began := time.Now()
	return countWhile(ctx, n, func() bool { return time.Since(began) < d }, do)
}

// countTo has them make so many calls in all.
func countTo(ctx context.Context, n, calls int, do func(client int) (int, error)) (float64, error) {
	var made atomic.Int64
	return countWhile(ctx, n, func() bool { return made.Add(1) <= int64(calls) }, do)
}

func countWhile(ctx context.Context, n int, more func() bool, do func(client int) (int, error)) (float64, error) {
	return countWhileEach(ctx, n, func(int) bool { return more() }, do)
}

// countWhileEach asks for each client whether it goes on.
func countWhileEach(
	ctx context.Context, n int, more func(client int) bool, do func(client int) (int, error),
) (float64, error) {
	var (
		units atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  error
	)
	began := time.Now()
	for c := range n {
		wg.Go(func() {
			for ctx.Err() == nil && more(c) {
				k, err := do(c)
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = errors.Join(errs, err)
					return
				}
				units.Add(int64(k))
			}
		})
	}
	wg.Wait()
	return float64(units.Load()) / time.Since(began).Seconds(), errors.Join(errs, ctx.Err())
}
