package after

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// forgetAfter is for how long nobody may know a job, in nanoseconds, before it counts as forgotten: it may be between.
const forgetAfter = 10e9

// target is a job that held ones name.
type target struct {
	num uint64
	// outcome is the state in which it has ended, or node.OutcomeUnknown; "" = it has not, as far as was seen.
	// Invariant: recorded in the turn in which it is set.
	outcome string
	// refs counts the held jobs that name it. Invariant: above 0.
	refs int
	// waiting are those, and some that are held no more, until there is an outcome.
	waiting []uint64
	// at is its place in Book.looks, −1 = it is not there: it has an outcome, or is held itself.
	at int
	// missed is since when nobody knows it, by clock.Boot, 0 = somebody does.
	missed int64
}

// Allows reports whether a job may begin whose condition meets an outcome.
func Allows(when jobspec.When, outcome string) bool {
	switch when {
	case jobspec.WhenAny:
		return true
	case jobspec.WhenOK:
		return outcome == fsm.TaskSucceeded.String()
	case jobspec.WhenNotOK:
		return outcome != fsm.TaskSucceeded.String() && outcome != node.OutcomeUnknown
	case jobspec.WhenEach: // its tasks wait, one by one; see package gates
	}
	return false
}

// Outcome returns how a job has ended that held ones name, as far as that was seen.
func (b *Book) Outcome(num uint64) string {
	if t := b.targets[num]; t != nil {
		return t.outcome
	}
	return ""
}

// name returns the target of a number, a new one if there is none.
func (b *Book) name(num uint64) *target {
	t := b.targets[num]
	if t == nil {
		t = &target{num: num, at: -1}
		b.targets[num] = t
		if !b.IsHeld(num) {
			b.addLook(t)
		}
	}
	return t
}

// unname counts a held job less that names a target.
func (b *Book) unname(num uint64, fx *turn.Effects) {
	t := b.targets[num]
	if t.refs--; t.refs == 0 {
		b.dropLook(t)
		delete(b.targets, num)
		if t.outcome != "" {
			fx.Writes = append(fx.Writes, record.Tidy(record.BucketOutcomes, record.Number(num)))
		}
		return
	}
	if len(t.waiting) > 2*t.refs+16 { // most of them are held no more
		t.waiting = slices.DeleteFunc(t.waiting, func(num uint64) bool { return !b.IsHeld(num) })
	}
}

// Standing is what the core says of a job that is looked for.
type Standing struct {
	// Outcome is the state in which it has ended, "" = it has not.
	Outcome string
	// Missing: nobody knows it. Retired: it has ended, and is no longer kept.
	Missing, Retired bool
}

// Look looks for up to n of the jobs that are waited for, in turns.
func (b *Book) Look(n int, standing func(num uint64) Standing, fx *turn.Effects) {
	for n = min(n, len(b.looks)); n > 0; n-- {
		if b.next >= len(b.looks) {
			b.next = 0
		}
		t := b.looks[b.next]
		b.LookFor(t.num, standing, fx)
		if t.at == b.next { // else another one is there now
			b.next++
		}
	}
}

// LookFor looks for one job, if any wait for it.
func (b *Book) LookFor(num uint64, standing func(num uint64) Standing, fx *turn.Effects) {
	t := b.targets[num]
	if t == nil || t.at < 0 {
		return
	}
	switch s := standing(num); {
	case s.Outcome != "":
		b.Saw(num, s.Outcome, fx)
	case s.Retired:
		b.Saw(num, node.OutcomeUnknown, fx)
	case !s.Missing:
		t.missed = 0
	case t.missed == 0:
		t.missed = b.now.Boot
	case b.now.Boot-t.missed >= forgetAfter:
		b.Saw(num, node.OutcomeUnknown, fx)
	}
}

// Awaited returns how many jobs are looked for.
func (b *Book) Awaited() int { return len(b.looks) }

// addLook has a target looked for.
func (b *Book) addLook(t *target) {
	if t.at < 0 && t.outcome == "" {
		t.at = len(b.looks)
		b.looks = append(b.looks, t)
	}
}

// dropLook has a target looked for no more.
func (b *Book) dropLook(t *target) {
	if t.at < 0 {
		return
	}
	last := len(b.looks) - 1
	b.looks[t.at], b.looks[last].at = b.looks[last], t.at
	b.looks[last], b.looks = nil, b.looks[:last]
	t.at = -1
}
