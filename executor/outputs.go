package executor

import "time"

// OutputRemoval says why and when a site has removed an output that it kept.
type OutputRemoval struct {
	ByAge bool // else for room: all together took too much
	At    time.Time
}

// OutputHistory tells what has become of outputs that are kept no more; handlers that
// keep the output of ended attempts implement it.
type OutputHistory interface {
	// RemovedOutput returns why an attempt's output was removed, false if that is not
	// known: it never was here, or went too long ago. Attempt 0 is the newest.
	RemovedOutput(job string, task, attempt uint32) (OutputRemoval, bool)
}

// OutputStats is what a site keeps of the output of ended attempts.
type OutputStats struct {
	Outputs  int64 // attempts whose output is kept
	Bytes    int64 // as they count against MaxBytes
	MaxBytes int64
	Keep     time.Duration
	Oldest   time.Time // end of the oldest kept attempt; zero = none is kept
	// Removed since the broker's start.
	RemovedByAge, RemovedByBytes uint64
	// Brought are those of the site's own tasks that ran at other sites, brought here since the broker's start; Waiting
	// are to come yet.
	Brought uint64
	Waiting int
	// Trouble is why outputs cannot be put into the store now, "" = nothing. They stay
	// where they were written, and can be read.
	Trouble string
}
