package quotas

import (
	"math/bits"
	"time"
)

const (
	// decaySteps is in how many steps a half-life forgets half: each forgets 1 − 2^(−1/decaySteps) of it, in 2^−32.
	decaySteps = 64
	decayed    = 46265345
)

// stepOf returns the milliseconds of each of the steps of a half-life.
func stepOf(halfLife time.Duration) int64 { return max(halfLife.Milliseconds()/decaySteps, 1) }

// SetHalfLife says after how long half of the users' use is forgotten. What was forgotten before stays so: the use goes
// on from what it was when it was written.
func (b *Book) SetHalfLife(d time.Duration) { b.stepMs = stepOf(d) }

// Decay forgets what is due of everybody's use, also of those of whom nothing runs: else these would wait behind others
// for what they used long ago. What has changed is to be written, so that another half-life at the next start counts
// from then on. Wall is unix time in milliseconds.
func (b *Book) Decay(wall int64) {
	for _, u := range b.users {
		if before := u.use.milliSeconds; before > 0 {
			u.use.decay(wall, b.stepMs)
			if u.use.milliSeconds != before {
				u.unwritten = true
				b.changed(u)
			}
		}
	}
}

// use is thousandths of core seconds that a user's tasks have run, of which each half-life forgets a half. It is in
// integers, so that equal clocks give equal sums.
type use struct {
	milliSeconds uint64
	// at is up to when it was decayed, unix milliseconds; 0 = never.
	at int64
}

// decay forgets what is due, in steps of so many milliseconds. A clock that is set back forgets nothing.
func (u *use) decay(wall, stepMs int64) {
	if u.at == 0 || u.milliSeconds == 0 {
		u.at = wall
		return
	}
	for ; wall-u.at >= stepMs && u.milliSeconds > 0; u.at += stepMs {
		hi, lo := bits.Mul64(u.milliSeconds, decayed)
		u.milliSeconds -= max(hi<<32|lo>>32, 1)
	}
	u.at = max(u.at, wall-stepMs)
}

// charge adds cores, in thousandths, that ran for some milliseconds.
func (u *use) charge(milliCPU uint64, ms, wall, stepMs int64) {
	u.decay(wall, stepMs)
	if ms > 0 {
		u.milliSeconds += milliCPU * uint64(ms) / 1000
	}
}
