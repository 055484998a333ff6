// Package inputs knows whose files cannot be had now: an owner that was not reached, or a job whose files it did not
// give, rests, longer each time, and meanwhile this site declines its tasks at once. It is part of step 6.
package inputs

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Fault says why files of a task cannot be had.
type Fault uint8

// The faults.
const (
	Cancelled Fault = iota // it is to end, or its broker ends
	Away                   // the owner is not reached, behind, too busy or too slow: all its jobs rest
	Refused                // the owner does not give them, or gives others: the job rests
	NoRoom                 // this site's own trouble with them: the job rests
	Unfit                  // they are more than this site takes of others: the job rests
	Broken                 // they can never be had, by anybody: the task fails
	Full                   // this site has promised its room, or has none: the job rests until it would fit
)

const (
	// firstRest and longestRest are as those of owners that give no keys (see package unseal): after each rest others
	// wait behind what is fetched in vain again.
	firstRest, longestRest = 2 * time.Second, 4 * time.Minute
	// maxRests bounds the owners and jobs that rest.
	maxRests = 4096
)

// subject is an owner, or with a number one of its jobs.
type subject = command.JobID

// rest is why a subject rests, until when by CLOCK_BOOTTIME, and for how long this time.
type rest struct {
	fault  Fault
	why    string
	until  int64
	length time.Duration
}

// Book holds what rests.
type Book struct {
	now *turn.Clock
	by  map[subject]*rest
}

// NewBook returns a book in which nothing rests.
func NewBook(now *turn.Clock) Book { return Book{now: now, by: map[subject]*rest{}} }

// Failed has the owner of a job, or the job, rest. What fails while it rests was begun before, and changes nothing.
func (b *Book) Failed(job command.JobID, f Fault, why string) {
	s := job
	switch f {
	case Away:
		s = subject{Site: job.Site}
	case Cancelled, Broken:
		return
	case Refused, NoRoom, Unfit, Full:
	}
	r := b.by[s]
	switch {
	case r == nil && len(b.by) >= maxRests:
		return
	case r == nil:
		r = &rest{}
		b.by[s] = r
	case b.now.Boot < r.until:
		return
	}
	r.length = min(max(firstRest, 2*r.length), longestRest)
	if f == Full {
		r.length = longestRest
	}
	r.fault, r.until = f, b.now.Boot+int64(r.length)
	format := "%s; tried again in %s"
	if f == Full {
		format = "%s; tried again once it fits, or in %s"
	}
	r.why = command.Clip(fmt.Sprintf(format, why, r.length.Round(time.Second)))
}

// Fits ends the rest of a job for which there would be room now.
func (b *Book) Fits(job command.JobID) {
	if r := b.by[job]; r != nil && r.fault == Full && r.why != "" {
		r.until = min(r.until, b.now.Boot)
	}
}

// Had notes that all files of a task of a job were had: neither its owner nor the job rests.
func (b *Book) Had(job command.JobID) {
	delete(b.by, job)
	delete(b.by, subject{Site: job.Site})
}

// Resting returns why tasks of a job are declined now; "": they are not.
func (b *Book) Resting(job command.JobID) (f Fault, why string) {
	for _, s := range [...]subject{{Site: job.Site}, job} {
		if r := b.by[s]; r != nil && b.now.Boot < r.until {
			return r.fault, r.why
		}
	}
	return 0, ""
}

// maxUnfitting is how many jobs of an owner may be declined for lack of room without a word about its others.
const maxUnfitting = 8

// Alike reports whether an owner's other jobs would hardly fare better than one whose files cannot be had. What does
// not fit says nothing of those that want less: they pass it. But an owner of many that do not fit would have this
// site's machines for each of them in turn, while others wait.
func (b *Book) Alike(job command.JobID, f Fault) bool {
	switch f {
	case Away, Refused, NoRoom, Broken:
		return true
	case Full:
		n := 0
		for s, r := range b.by {
			if s.Site == job.Site && r.fault == Full && b.now.Boot < r.until {
				n++
			}
		}
		return n > maxUnfitting
	case Cancelled, Unfit:
	}
	return false
}

// Expire reports whether, since it was called last, something has rested long enough: what was declined for that may be
// assigned here again. What nobody asked for since then is forgotten as long as it has rested.
func (b *Book) Expire() (some bool) {
	for s, r := range b.by {
		switch {
		case b.now.Boot < r.until:
		case r.why != "":
			r.why, some = "", true
		case b.now.Boot >= r.until+int64(longestRest):
			delete(b.by, s)
		}
	}
	return some
}
