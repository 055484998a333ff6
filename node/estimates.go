package node

import (
	"time"
)

// Estimate is when a job's next task will probably start, counted from now.
type Estimate struct {
	// Unknown says why there is none, "" = there is.
	Unknown string
	// P50 and P90: it starts within so long with even odds, and is meant to do so nine times of
	// ten. How often it did is in Calibration.
	P50, P90 time.Duration
	// Waits is of how many earlier waits both are made, 0 = it starts at once.
	Waits int
	// Calibrated: these were of the same kind, with about as many tasks ahead.
	Calibrated bool
}

// Calibration is how this broker's latest estimates came out.
type Calibration struct {
	Starts int // judged so far, the last 1000 at most
	Held   int // of these started within their P90
	Open   int // estimates that wait for their start
}
