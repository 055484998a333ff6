package node

import (
	"github.com/cloudshare/cloudshare/node/coord"
)

// Metrics are the broker's figures at this moment.
type Metrics struct {
	JournalSyncs       uint64
	JournalSyncSeconds float64
	Index              uint64
	Attempts           int
	HomeWaiting        int
	Publishing         int // jobs on their way to the state, without those that are held
	Keys               int
	Dying              int     // attempts of the federation that are lost and may still live
	UnjustLosses       uint64  // of this site, by leaders, since the broker's start
	PendingWork        int     // what the last entry applied has left for the next ones
	Declined, Lost     []Tally // since the broker's start
	// Troubled counts, by handler, the machines that could not start tasks and have
	// started none since.
	Troubled  map[string]int
	Log       coord.Figures
	Users     UserTotals
	FreeBytes int64 // of the data directory's file system, 0 = not watched
}

// Tally is a count since the broker's start.
type Tally struct {
	Handler, Kind string
	Count         uint64
}
