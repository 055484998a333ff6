package sched

// Bounds of virtual queues. What would exceed them counts as the bound.
const (
	// MaxUnits bounds the units that wait, in one virtual queue or in reality:
	// ten million tasks of a million cores.
	MaxUnits = 10_000_000_000_000
	// maxAt bounds the time at which a core becomes free.
	maxAt = 1 << 60
	// maxAhead is how long what waits may take on all cores; beyond it the wait
	// counts as MaxWait.
	maxAhead = 1 << 59
)

// MaxWait bounds a site's or a coalition's wait in a rank, in cores·quanta:
// 2⁶⁷ is more than 4·10¹³ core-hours. The wait of what has no core to run on
// counts as so much.
var MaxWait = Int128{Hi: 1 << 3}

// Queue is a coalition's virtual queue: what its sites released, served by their
// cores alone, first come first served. It is in units of one core: a task of
// width q is q units. What waits in it has one length, the mean of all that
// waits; so it is a few numbers and the times at which cores become free,
// and exact if lengths are equal.
//
// Starts happen when a core is free, in log time, so changes of cores and of
// lengths count from their entry on and never change the past.
type Queue struct {
	clock   int64  // of the last Step; Invariant: never falls
	units   int64  // that wait. Invariant: while > 0, every core frees at clock or later
	length  int64  // of each unit that starts before the next Step; Invariant: > 0 while units > 0
	work    Int128 // of all that wait, quanta; Invariant: ≥ units
	settled Int128 // Σ starts − Σ releases, these over all units, those over started ones
	free    slots
	away    slots // cores that went, by when they went or would have been free, the later
	least   int64 // cores that it has if its sites have none; Invariant: 0 or 1
	lent    int64 // cores of its sites; Invariant: free has max(least, lent)

	// Derived.
	cores int64  // in free
	total Int128 // Total, if known
	known bool
}

// NewQueue returns the empty queue of nobody at a time. With least 1 it never has less
// than one core, so that no wait in it is without end; with 0 what waits where there
// is no core waits forever.
func NewQueue(least, now int64) *Queue {
	q := &Queue{clock: now, least: least, cores: least}
	if least > 0 {
		q.free = slots{{0, least}}
	}
	return q
}

// Step moves the queue to a time and changes it: what can start before now
// starts; then lengths are corrected, cores come and go, home runs count as
// released when they were, and new units are released. It keeps at most so
// many different times at which cores become free (see slots.coarsen).
//
// REQUIRES: now ≥ the last Step's, 0 ≤ now ≤ MaxNow, limit ≥ 2.
func (q *Queue) Step(now int64, c *Change, limit int) {
	q.start(now - 1)
	q.withdraw(c.Gone)
	q.correct(now, c.Corrected)
	q.resize(now, c.Cores)
	q.prolong(now, c.Longer)
	if c.Past.Units > 0 {
		q.release(c.Past, int64(c.Past.Released.Div(c.Past.Units).Lo))
		q.measure()
		q.start(now - 1)
	}
	fresh := c.New
	fresh.Released = Mul64(fresh.Units, now)
	q.release(fresh, now)
	q.clock, q.known = now, false
	q.measure()
	q.free.coarsen(now, limit)
	q.away.coarsen(0, limit)
}

// start starts what can start by limit.
func (q *Queue) start(limit int64) {
	if q.units == 0 {
		return
	}
	started, sum := q.free.startBy(limit, q.units, q.length)
	q.units -= started
	q.work = q.work.Sub(Mul64(started, q.length))
	q.settled = q.settled.Add(sum)
	if q.units == 0 {
		q.work = Int128{}
	}
}

// release enters units. If nothing waits, cores count as free from at on; else
// none is free before the clock, and the units join those that wait.
func (q *Queue) release(b Batch, at int64) {
	if b.Units == 0 {
		return
	}
	if q.units == 0 {
		q.free.clip(at)
	}
	q.units = min(q.units+b.Units, MaxUnits)
	q.work = q.work.Add(b.Work)
	q.settled = q.settled.Sub(b.Released)
	q.bound()
}

// bound has what waits keep a quantum each.
func (q *Queue) bound() {
	if least := Int64(q.units); q.work.Cmp(least) < 0 {
		q.work = least
	}
}

// measure takes the mean of what waits for the length of what starts next.
func (q *Queue) measure() {
	if q.length = 0; q.units > 0 {
		q.length = meanOf(q.work, q.units)
	}
}

// withdraw takes out units that will not run. Which units wait here is not known;
// if fewer wait than leave, the others have started here, and their wait stays.
func (q *Queue) withdraw(b Batch) {
	n := min(b.Units, q.units)
	if n == 0 {
		return
	}
	work, released := b.Work, b.Released
	if n < b.Units {
		work, released = q.work, b.Released.Div(b.Units).MulInt64(n)
	}
	q.units -= n
	q.settled = q.settled.Add(released)
	if q.work = q.work.Sub(work); q.units == 0 {
		q.work = Int128{}
	}
	q.bound()
}

// correct enters that what ended was longer or shorter than it counted. What
// waits has that much more or less to do; what is left, or all if nothing
// waits, changes when cores become free: shorter, the last ones, but none
// before now; longer, the first one, unless it is idle.
func (q *Queue) correct(now int64, by Int128) {
	if by.IsZero() {
		return
	}
	if q.units > 0 {
		q.work = q.work.Add(by)
		by = Int128{}
		if least := Int64(q.units); q.work.Cmp(least) < 0 {
			by = q.work.Sub(least)
		}
		q.bound()
	}
	switch {
	case len(q.free) == 0:
	case by.Sign() < 0:
		q.shorten(now, by.Neg())
	case by.Sign() > 0 && q.free[0].At > now:
		at := int64(maxAt)
		if by.Hi == 0 && by.Lo < maxAt {
			at = min(maxAt, q.free[0].At+int64(by.Lo))
		}
		q.move(0, 1, at)
	}
}

// prolong has units that still run keep cores. What waits has that much more to do;
// if nothing does, they take the cores that free first, as if they had just started.
func (q *Queue) prolong(now int64, b Batch) {
	switch {
	case b.Units == 0:
	case q.units > 0:
		q.work = q.work.Add(b.Work)
	case q.cores > 0:
		q.free.clip(now)
		q.free.startBy(maxAt, min(b.Units, q.cores), meanOf(b.Work, b.Units))
		q.free.cap(maxAt)
	}
}

// meanOf returns the length of each of n units, within what a length may be.
func meanOf(work Int128, n int64) int64 {
	if mean := work.Div(n); mean.Hi == 0 && mean.Lo < MaxNow {
		return max(1, int64(mean.Lo))
	}
	return MaxNow
}

// shorten has the cores that free last be free earlier, by so much together.
func (q *Queue) shorten(now int64, by Int128) {
	for !by.IsZero() {
		last := q.free[len(q.free)-1]
		busy := last.At - now
		if busy <= 0 {
			return
		}
		n := last.Cores
		if whole := by.Div(busy); whole.Hi == 0 && whole.Lo < uint64(n) {
			n = int64(whole.Lo)
		}
		if n == 0 {
			q.move(len(q.free)-1, 1, last.At-int64(by.Lo))
			return
		}
		by = by.Sub(Mul64(busy, n))
		q.move(len(q.free)-1, n, now)
	}
}

// move has n cores of the i-th slot be free at another time.
func (q *Queue) move(i int, n, at int64) {
	if q.free[i].Cores -= n; q.free[i].Cores == 0 {
		q.free = append(q.free[:i], q.free[i+1:]...)
	}
	q.free.add(at, n)
}

// resize gives the queue more cores, or takes some. Those that free first go
// first. All are remembered, so that they come back as busy as they went, the
// busiest first: taking cores away and giving them back gains nothing.
func (q *Queue) resize(now, more int64) {
	if more == 0 {
		return
	}
	q.lent = max(0, q.lent+more)
	have, cores := q.cores, max(q.least, q.lent)
	q.cores = cores
	for have > cores {
		s := q.free[0]
		n := min(s.Cores, have-cores)
		have -= n
		if q.free[0].Cores -= n; q.free[0].Cores == 0 {
			q.free = q.free[1:]
		}
		q.away.add(max(s.At, now), n)
	}
	for have < cores {
		at, n := now, cores-have
		if last := len(q.away) - 1; last >= 0 {
			s := &q.away[last]
			at, n = max(s.At, now), min(n, s.Cores)
			if s.Cores -= n; s.Cores == 0 {
				q.away = q.away[:last]
			}
		}
		have += n
		q.free.add(at, n)
	}
}

// Total returns the wait of all that was released so far, if nothing else comes and
// nothing changes, in cores·quanta: at least 0, at most MaxWait.
func (q *Queue) Total() Int128 {
	if !q.known {
		return q.count()
	}
	return q.total
}

// Count keeps Total for later calls.
func (q *Queue) Count() {
	if !q.known {
		q.total, q.known = q.count(), true
	}
}

func (q *Queue) count() Int128 {
	sum := q.settled
	if q.units > 0 {
		free, cores := q.expected()
		if cores == 0 || Mul64(q.units, q.length).Cmp(Mul64(maxAhead, cores)) >= 0 {
			return MaxWait
		}
		sum = sum.Add(free.drained(q.units, q.length, cores))
	}
	return clamped(sum)
}

// expected returns when cores become free, and how many, with those that went: each is thought to
// come back after the length of a task, and if it has been away for longer,
// after as long again. So what a site's own users take for a while is a wait, and
// what is gone for good counts less and less.
func (q *Queue) expected() (slots, int64) {
	if len(q.away) == 0 {
		return q.free, q.cores
	}
	all := append(make(slots, 0, len(q.away)+len(q.free)), q.away...)
	for i := range all {
		at := all[i].At
		all[i].At = min(maxAt, max(at+q.length, q.clock+(q.clock-at)))
	}
	n := len(all)
	all = append(all, q.free...)
	all.mergePrefix(n)
	return all, all.capacity()
}

// clamped is x within what a rank counts.
func clamped(x Int128) Int128 {
	switch {
	case x.Sign() < 0:
		return Int128{}
	case x.Cmp(MaxWait) > 0:
		return MaxWait
	}
	return x
}
