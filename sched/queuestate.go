package sched

import (
	"errors"
	"fmt"
)

// ErrBadQueue is for numbers that no virtual queue has.
var ErrBadQueue = errors.New("bad virtual queue")

// Clone returns a copy that shares nothing.
func (q *Queue) Clone() *Queue {
	c := *q
	c.free, c.away = append(slots(nil), q.free...), append(slots(nil), q.away...)
	return &c
}

// QueueState is all that a queue is made of, for snapshots.
type QueueState struct {
	Clock, Units, Length int64
	Work, Settled        Int128
	Free, Away           []Slot // not to be changed
	Least, Lent          int64  // Lent is that of Free if Least is 0
}

// State returns what the queue is made of.
func (q *Queue) State() QueueState {
	return QueueState{q.clock, q.units, q.length, q.work, q.settled, q.free, q.away, q.least, q.lent}
}

// RestoreQueue makes a queue of what State returned. Errors: ErrBadQueue for
// numbers that no queue has.
func RestoreQueue(s QueueState) (*Queue, error) {
	q := &Queue{
		clock: s.Clock, units: s.Units, length: s.Length, work: s.Work, settled: s.Settled, free: s.Free,
		away: s.Away, least: s.Least, lent: s.Lent,
	}
	switch {
	case s.Clock < 0 || s.Clock > MaxNow || s.Units < 0 || s.Units > MaxUnits:
		return nil, fmt.Errorf("%w: clock %d, %d units", ErrBadQueue, s.Clock, s.Units)
	case s.Units == 0 && (s.Length != 0 || !s.Work.IsZero()):
		return nil, fmt.Errorf("%w: work without units", ErrBadQueue)
	case s.Units > 0 && (s.Length <= 0 || s.Length > MaxNow || s.Work.Cmp(Int64(s.Units)) < 0):
		return nil, fmt.Errorf("%w: units without work", ErrBadQueue)
	case !q.free.valid() || !q.away.valid():
		return nil, fmt.Errorf("%w: cores out of order", ErrBadQueue)
	case s.Units > 0 && len(s.Free) > 0 && s.Free[0].At < s.Clock:
		return nil, fmt.Errorf("%w: a core is idle while something waits", ErrBadQueue)
	}
	if q.cores = q.free.capacity(); q.least == 0 {
		q.lent = q.cores
	}
	if q.least < 0 || q.least > 1 || q.lent < 0 || q.cores != max(q.least, q.lent) {
		return nil, fmt.Errorf("%w: %d cores, of %d lent", ErrBadQueue, q.cores, q.lent)
	}
	return q, nil
}

// maxCores bounds the cores of a queue: those of as many sites as may register.
const maxCores = 1 << 40

func (f slots) valid() bool {
	sum := int64(0)
	for i, s := range f {
		if s.Cores <= 0 || s.Cores > maxCores-sum || s.At < 0 || s.At > maxAt || i > 0 && f[i-1].At >= s.At {
			return false
		}
		sum += s.Cores
	}
	return true
}
