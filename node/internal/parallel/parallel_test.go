package parallel

import (
	"sync/atomic"
	"testing"
)

// TestEach: each number is called with once, and all calls are over when it returns.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		calls := make([]atomic.Int64, n)
		Each(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("of %d, %d: %d calls", n, i, got)
			}
		}
	}
}
