package relay

import "time"

// RemindEvery is after how long the log repeats what lasts and harms nobody.
const RemindEvery = time.Minute

// Reminder decides when the log repeats what does not change: at once if it is of
// another kind than what was said last, else after a pause. One goroutine uses it.
type Reminder struct {
	Every      time.Duration // the pause; 0 = LogEvery
	kind       string        // of what was said last
	quietUntil time.Time     // nothing more of that kind is said before
}

// Due reports whether something of that kind is to be said now, and takes it for said.
func (r *Reminder) Due(kind string, now time.Time) bool {
	if now.Before(r.quietUntil) && r.kind == kind {
		return false
	}
	every := r.Every
	if every == 0 {
		every = LogEvery
	}
	r.Wait(kind, now.Add(every))
	return true
}

// Wait has nothing of that kind said before a moment.
func (r *Reminder) Wait(kind string, until time.Time) { r.kind, r.quietUntil = kind, until }

// Reset forgets what was said.
func (r *Reminder) Reset() { r.Wait("", time.Time{}) }
