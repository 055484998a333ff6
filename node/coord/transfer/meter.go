package transfer

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// leastRate is what must come, in bytes a second over stallAfter, before compression.
	leastRate  = 64 << 10
	stallAfter = 2 * time.Minute
	samples    = 8 // in stallAfter
)

// meter finds a pull that the other side does not serve. Time in which nothing is asked of it, or a part is being kept
// here, does not count.
type meter struct {
	bytes   atomic.Int64
	links   atomic.Int32 // in use
	keeping atomic.Int32 // parts that are being kept
}

func (m *meter) arrived(n int) { m.bytes.Add(int64(n)) }

// watch has stalled called once less than leastRate has come for stallAfter; it ends with ctx.
func (m *meter) watch(ctx context.Context, stalled func()) {
	tick := time.NewTicker(stallAfter / samples)
	defer tick.Stop()
	var last [samples]int64 // a sum before each sample
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := m.bytes.Load()
		if m.links.Load() == 0 || m.keeping.Load() > 0 {
			n = 0
		}
		if n >= samples && now-last[n%samples] < leastRate*int64(stallAfter/time.Second) {
			stalled()
			return
		}
		last[n%samples] = now
		n++
	}
}
