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
	HeldByHand         int // jobs
	AwaitInputs        int // jobs that are held until their inputs are here
	GatedTasks         int // held in the state, to be released by this site's broker
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
	Files     FileFigures
	Notices   NoticeFigures
}

// FileFigures are of files that travel with tasks.
type FileFigures struct {
	InBytes, OutBytes int64 // from and to other sites, since the broker's start
	// Delivering counts outputs of this site's tasks that are not fetched yet; OldestMs is for how long the oldest
	// waits, and NoRoom that this site has no room for them.
	Delivering int
	OldestMs   int64
	NoRoom     bool
	Spaces     []SpaceUse // none: the broker keeps no files
}

// Tally is a count since the broker's start.
type Tally struct {
	Handler, Kind string
	Count         uint64
}
