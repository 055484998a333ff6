package ahead

import (
	"math/bits"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

const (
	// samples are how many measurements are kept, one at a time. The least of them is what travelling takes, and the
	// rest of the others is load. A site must be far by all of them before it says so, or a burst of work would look
	// like distance; once it has, only the latest count.
	samples, latest = 32, 8
	// enough of them make a judgement.
	enough = 4
	// far is from which time on, in milliseconds, a site asks for tasks ahead: two round trips of 15 ms. In one machine
	// room it is less than 10.
	far = 30
	// leastTold is the least time that is told.
	leastTold = 64
)

// Idle measures how long this site's machines idle between the end of a task and the next assignment: from handing a
// command to the log to having its effect here, as with the report of an end.
type Idle struct {
	out *turn.Outbox
	now *turn.Clock
	// took are the last measurements, in milliseconds, the oldest first.
	took []int64
	// seq is the command that is being measured since boot, 0 = none; last is the newest one that was handed over.
	seq, last uint64
	boot      int64
	// told is what the state was told last, inflight that this is being ordered; before is what it went by until then.
	told, before int64
	inflight     bool
}

// Sent begins a measurement, if none is under way, with the last command that was handed to the log.
func (i *Idle) Sent() {
	seq := i.out.Seq()
	if i.seq == 0 && seq > i.last {
		i.seq, i.boot = seq, i.now.Boot
	}
	i.last = seq
}

// Heard ends the measurement, if the command that it is of is among those whose results are known.
func (i *Idle) Heard(cmds []command.Command) {
	if i.seq == 0 || !slices.ContainsFunc(cmds, func(c command.Command) bool {
		return c.ID.Seq == i.seq && c.ID.Incarnation == i.out.Incarnation()
	}) {
		return
	}
	i.seq = 0
	i.Took(time.Duration(i.now.Boot - i.boot))
}

// Took takes a measurement.
func (i *Idle) Took(d time.Duration) {
	if len(i.took) == samples {
		i.took = slices.Delete(i.took, 0, 1)
	}
	i.took = append(i.took, d.Milliseconds())
}

// Ms returns what the state was told: a run that takes longer than four times that earns nothing ahead. 0: nothing is
// assigned ahead.
func (i *Idle) Ms() int64 { return i.told }

// Expects reports whether the state may assign tasks ahead, or may have done so until a moment ago.
func (i *Idle) Expects() bool { return i.told > 0 || i.before > 0 }

// want returns what the state is to be told: a power of two that is not less than what was measured. What was told
// stays as long as that is within a quarter of it and all of it, so that it hardly ever changes.
func (i *Idle) want() int64 {
	if len(i.took) < enough {
		return i.told
	}
	count := len(i.took)
	if i.told > 0 {
		count = min(count, latest)
	}
	least := slices.Min(i.took[len(i.took)-count:])
	switch {
	case i.told > 0 && least > i.told/4 && least <= i.told:
		return i.told
	case least < far:
		return 0
	}
	return min(max(leastTold, int64(1)<<bits.Len64(uint64(least-1))), command.MaxAheadMs)
}

// Tell has the state know how long machines idle, once its version has that. One command is under way at a time.
func (i *Idle) Tell(version uint32) {
	if version < command.AheadVersion || i.inflight {
		return
	}
	ms := i.want()
	if i.before = i.told; ms == i.told {
		return
	}
	i.told, i.inflight = ms, true
	i.out.Add(&command.Ahead{IdleMs: ms}, func(command.Result, turn.StateReader, *turn.Effects) { i.inflight = false })
}

// forget has the state told again: a registration has reset it.
func (i *Idle) forget() { i.told, i.before, i.inflight, i.seq, i.last = 0, 0, false, 0, 0 }
