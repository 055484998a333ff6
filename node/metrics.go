package node

import (
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
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

// Metrics are the broker's figures at this moment.
type Metrics struct {
	JournalSyncs       uint64
	JournalSyncSeconds float64
	Index              uint64
	Attempts           int
	HomeWaiting        int
	Publishing         int
	Keys               int
	Dying              int     // attempts of the federation that are lost and may still live
	Declined, Lost     []Tally // since the broker's start
	// Troubled counts, by handler, the machines that could not start tasks and have
	// started none since.
	Troubled  map[string]int
	Log       coord.Figures
	FreeBytes int64 // of the data directory's file system, 0 = not watched
}
