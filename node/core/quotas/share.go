package quotas

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

const (
	// aheadSeconds is for how long each core that a user has open is taken to run on, when users are compared whose
	// jobs wait: of two that have used nothing, the one with less in the queue is next.
	aheadSeconds = 60
	// partsOfWindow: a user fills at most one of so many parts of the window, whatever it has open, so that one whose
	// tasks fit no machine, or whose job is an array, keeps nobody else from publishing.
	partsOfWindow = 4
)

// share is what decides when a user's jobs are published, and before whose they start.
type share struct {
	// heldJobs wait at this site for their user's turn: held tasks, which need heldCPU thousandths of cores.
	heldJobs      int
	held, heldCPU uint64
	// waitCPU thousandths of cores are needed by jobs that wait for other jobs.
	waitCPU uint64
	// gatedCPU thousandths of cores are needed by tasks that are held in the federation, as they were looked at: they
	// may wait for a job that is not published yet.
	gatedCPU uint64
	queued   uint64 // tasks of its other jobs, as they were looked at
	nice     uint32 // of the job that was published last
	counted  uint64 // of what it has open, in the window
	key      uint64 // its place in the queue
	in       standing
	at       int // in the queue of its standing, −1 = it is not there
}

// window bounds what users' jobs that are published may need.
type window struct {
	milliCPU uint64 // 0: nothing is to be published
	used     uint64 // Invariant: the sum of all users' counted
	// queues are the users with held jobs, by what lets them publish.
	queues [standings]turns
	// uneven: not all jobs have their user's nice value yet.
	uneven bool
}

// published returns how many thousandths of cores the user's tasks need that wait in the federation's queue or run.
func (u *user) published() uint64 { return u.milliCPU - u.heldCPU - u.waitCPU - u.gatedCPU }

// changed brings the window in line with what a user has open, has used and may use.
func (b *Book) changed(u *user) {
	counted := min(u.published(), b.window.milliCPU/partsOfWindow)
	b.window.used += counted - u.counted
	u.counted = counted
	u.key = (u.use.milliSeconds + u.published()*aheadSeconds) / b.sharesOf(u)
	b.window.enqueue(u)
}

func (b *Book) sharesOf(u *user) uint64 { return max(b.limitsOf(u).Shares, 1) }

// SetWindow says how many thousandths of cores the users' published jobs may need together; 0: nothing is published.
func (b *Book) SetWindow(milliCPU uint64) {
	if milliCPU == b.window.milliCPU {
		return
	}
	b.window.milliCPU = milliCPU
	for _, u := range b.users {
		b.changed(u)
	}
}

// MustWait reports whether a job that the user submits now has to wait for the user's turn.
func (b *Book) MustWait(name string) bool {
	if name == "" {
		return false
	}
	u := b.users[name]
	if u == nil {
		u = &user{}
	}
	return u.heldJobs > 0 || !b.mayPublish(u)
}

// Waiting reports whether any jobs wait for their users' turns.
func (b *Book) Waiting() bool {
	return slices.ContainsFunc(b.window.queues[:], func(t turns) bool { return len(t) > 0 })
}

// Holds reports whether jobs of a user wait for the user's turn.
func (b *Book) Holds(name string) bool {
	u := b.users[name]
	return u != nil && u.heldJobs > 0
}

// mayPublish reports whether there is room in the window for one more job of a user. Who has none open always may.
func (b *Book) mayPublish(u *user) bool { return b.window.admits(b.window.standingOf(u)) }

// Hold counts a job that waits for its user's turn.
func (b *Book) Hold(name string, c Claim) {
	u := b.user(name)
	u.add(c)
	u.heldJobs++
	u.held += c.Tasks
	u.heldCPU += c.Tasks * c.MilliCPU
	b.changed(u)
}

// Release counts a held job as published, and returns how nice it is to be.
func (b *Book) Release(num uint64, name string, c Claim, now int64) (nice uint32) {
	u := b.user(name)
	u.heldJobs--
	u.held -= c.Tasks
	u.heldCPU -= c.Tasks * c.MilliCPU
	nice = b.NiceOf(name)
	b.follow(num, u, c, nice, now)
	return nice
}

// Wait counts a job that waits for other jobs: it is open, and takes nothing of the window.
func (b *Book) Wait(name string, c Claim) {
	if name == "" {
		return
	}
	u := b.user(name)
	u.add(c)
	u.waitCPU += c.Tasks * c.MilliCPU
	b.changed(u)
}

// Unwait counts a job no more that waited for other jobs.
func (b *Book) Unwait(name string, c Claim) {
	if name == "" {
		return
	}
	u := b.user(name)
	u.jobs--
	u.tasks -= c.Tasks
	u.milliCPU -= c.Tasks * c.MilliCPU
	u.bytes -= c.Bytes
	u.waitCPU -= c.Tasks * c.MilliCPU
	b.changed(u)
}

// Turn is how far a user is from the turn of its next held job.
type Turn struct {
	Held      uint64 // tasks
	Published uint64 // thousandths of cores that its tasks need that are not held and have not ended
	Before    int    // users with held jobs that have used less in relation to their shares
	Window    uint64 // thousandths of cores
}

// TurnOf returns how far a user is from its turn.
func (b *Book) TurnOf(name string) (t Turn) {
	t.Window = b.window.milliCPU
	u := b.users[name]
	if u == nil || u.at < 0 {
		return t
	}
	t.Held, t.Published = u.held, u.published()
	for _, q := range b.window.queues {
		for _, other := range q {
			if other.before(u) {
				t.Before++
			}
		}
	}
	return t
}

// Next returns the user whose held job is to be published next, "" if there is no room for any. The decision is by the
// least use in relation to the user's shares, of those that may publish.
func (b *Book) Next() string {
	var best *user
	for in, q := range b.window.queues {
		if len(q) > 0 && b.window.admits(standing(in)) && (best == nil || q[0].before(best)) {
			best = q[0]
		}
	}
	if best == nil {
		return ""
	}
	return best.name
}

// NiceOf returns how nice a user's job is that is published now: as the user's others in the queue, or by its use.
func (b *Book) NiceOf(name string) uint32 {
	u := b.users[name]
	switch {
	case u == nil:
		return 0
	case u.queued > 0:
		return u.nice
	}
	return b.niceNow(u)
}

// niceNow returns how nice a user's jobs should be: the use in relation to the shares, in sixteen steps each time it
// doubles, so that users with about the same take turns and a change is not ordered each time that something ran.
func (b *Book) niceNow(u *user) uint32 {
	seconds := u.use.milliSeconds / 1000 / b.sharesOf(u)
	if seconds == 0 {
		return 0
	}
	n := bits.Len64(seconds)
	return uint32(n-1)*16 + uint32(seconds<<(64-n)>>59&15) + 1
}

// setQueued notes how many of a job's tasks wait in the queue. One of which none did may have a nice value of long ago.
func (b *Book) setQueued(j *job, n uint64) {
	if j.queued == 0 && n > 0 && j.nice != j.user.nice {
		b.window.uneven = true
	}
	j.user.queued += n - j.queued
	j.queued = n
}

// setGated notes how many of a job's tasks are held in the federation.
func (j *job) setGated(n uint64) {
	j.user.gatedCPU += (n - j.gated) * j.MilliCPU
	j.gated = n
}

// Renice returns up to most jobs that are to have another nice value, because their users would otherwise not be served
// in the order of their use. While one user alone has tasks in the queue there is no such order. Jobs that are not
// published yet, at home or on their way, are left for later: of what the state does not know it can be told nothing.
func (b *Book) Renice(most int, published func(num uint64) bool) (out []command.Nice) {
	if !b.window.uneven && b.isInOrder() {
		return nil
	}
	b.window.uneven = false
	for _, j := range b.jobs {
		nice := b.niceNow(j.user)
		if j.nice == nice || j.queued == 0 {
			continue
		}
		if len(out) == most {
			b.window.uneven = true
			break
		}
		if !published(j.num) {
			b.window.uneven = true
			continue
		}
		j.nice, j.user.nice = nice, nice
		out = append(out, command.Nice{Num: j.num, Nice: nice})
	}
	return out
}

// isInOrder reports whether the users' nice values are in the order of their use. Equal use has no order.
func (b *Book) isInOrder() bool {
	type rank struct{ now, said uint32 }
	var ranks []rank
	for _, u := range b.users {
		if u.queued > 0 {
			ranks = append(ranks, rank{b.niceNow(u), u.nice})
		}
	}
	slices.SortFunc(ranks, func(x, y rank) int {
		return cmp.Or(cmp.Compare(x.now, y.now), cmp.Compare(x.said, y.said))
	})
	for i := 1; i < len(ranks); i++ {
		if ranks[i-1].now < ranks[i].now && ranks[i-1].said >= ranks[i].said {
			return false
		}
	}
	return true
}
