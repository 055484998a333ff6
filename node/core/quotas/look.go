package quotas

import "github.com/cloudshare/cloudshare/fsm"

// forgetAfter is how long a job is counted that neither its broker nor the state knows: it may be on its way between.
const forgetAfter = 10_000

// Moment is when the book looks.
type Moment struct {
	Now  int64 // ms, by a clock that nobody sets
	Wall int64 // unix ms
}

// Look looks at up to n open jobs, in turns: what has ended counts no more, and what runs is charged to its user for
// the time since the last look. counts returns a job's tasks by state, false if it is not known.
//
// A task that begins and ends between two looks is charged nothing, one that is seen in between is charged all the time
// between them: over many tasks that evens out.
func (b *Book) Look(n int, at Moment, counts func(num uint64) (fsm.Counts, bool)) {
	for n = min(n, len(b.jobs)); n > 0; n-- {
		if b.next >= len(b.jobs) {
			b.next = 0
		}
		j := b.jobs[b.next]
		c, known := counts(j.num)
		if !b.look(j, at, c, known) {
			b.next++
			continue
		}
		last := len(b.jobs) - 1
		b.jobs[b.next], b.jobs[last] = b.jobs[last], nil
		b.jobs = b.jobs[:last]
	}
}

// look updates one job, and reports whether it is open no more.
func (b *Book) look(j *job, at Moment, c fsm.Counts, known bool) (over bool) {
	left := uint64(0)
	switch {
	case known:
		j.missed = -1
		left = min(openTasks(&c), j.Tasks)
		if n := uint64(c[fsm.Running]); n > 0 {
			j.user.use.charge(n*j.MilliCPU, at.Now-j.looked, at.Wall, b.stepMs)
			j.user.unwritten = true
		}
	case j.missed < 0:
		j.missed = at.Now
		left = j.Tasks
	case at.Now-j.missed < forgetAfter:
		left = j.Tasks
	}
	j.looked = at.Now
	if known {
		b.setQueued(j, min(uint64(c[fsm.Queued]), left))
		j.setGated(min(uint64(c[fsm.Held]), left))
	} else if left == 0 {
		b.setQueued(j, 0)
		j.setGated(0)
	}
	j.user.tasks -= j.Tasks - left
	j.user.milliCPU -= (j.Tasks - left) * j.MilliCPU
	j.Tasks = left
	b.changed(j.user)
	if left > 0 {
		return false
	}
	j.user.bytes -= j.Bytes
	j.user.jobs--
	return true
}

// openTasks returns how many tasks have not ended.
func openTasks(c *fsm.Counts) (n uint64) {
	for s, k := range c {
		if !fsm.TaskState(s).Ended() {
			n += uint64(k)
		}
	}
	return n
}
