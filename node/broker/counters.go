package broker

import (
	"sync/atomic"
	"time"
)

// counters are what the loop counts for /metrics; read by Metrics.
type counters struct {
	syncs     atomic.Uint64
	syncNanos atomic.Uint64
}

func (m *counters) synced(d time.Duration) {
	m.syncs.Add(1)
	m.syncNanos.Add(uint64(d))
}
