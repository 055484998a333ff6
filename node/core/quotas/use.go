package quotas

import "math/bits"

const (
	// halfLifeMs is after how long half of a user's use is forgotten.
	halfLifeMs = 7 * 24 * 3600 * 1000
	// decaySteps is in how many steps that happens: each forgets 1 − 2^(−1/decaySteps) of it, in 2^−32.
	decaySteps = 64
	decayed    = 46265345
	stepMs     = halfLifeMs / decaySteps
)

// use is thousandths of core seconds that a user's tasks have run, of which each half-life forgets a half. It is in
// integers, so that equal clocks give equal sums.
type use struct {
	milliSeconds uint64
	// at is up to when it was decayed, unix milliseconds; 0 = never.
	at int64
}

// decay forgets what is due. A clock that is set back forgets nothing.
func (u *use) decay(wall int64) {
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
func (u *use) charge(milliCPU uint64, ms int64, wall int64) {
	u.decay(wall)
	if ms > 0 {
		u.milliSeconds += milliCPU * uint64(ms) / 1000
	}
}
