package cli

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestInParallel(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100} {
		done := make([]atomic.Int64, n)
		var now, most atomic.Int64
		err := InParallel(t.Context(), n, 4, func(_ context.Context, i int) error {
			if running := now.Add(1); running > most.Load() {
				most.Store(running)
			}
			defer now.Add(-1)
			done[i].Add(1)
			return nil
		})
		if err != nil || most.Load() > 4 {
			t.Errorf("%d: %v, %d at once", n, err, most.Load())
		}
		for i := range done {
			if done[i].Load() != 1 {
				t.Errorf("%d of %d was done %d times", i, n, done[i].Load())
			}
		}
	}
	wrong := errors.New("wrong")
	var begun atomic.Int64
	err := InParallel(t.Context(), 1000, 2, func(ctx context.Context, i int) error {
		if begun.Add(1); i == 3 {
			return wrong
		}
		if i > 3 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if !errors.Is(err, wrong) || begun.Load() > 6 {
		t.Errorf("%v after %d", err, begun.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = InParallel(ctx, 3, 2, func(context.Context, int) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
