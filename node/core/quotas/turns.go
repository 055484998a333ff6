package quotas

import (
	"cmp"
	"container/heap"
)

// standing is what lets a user publish a job.
type standing int

const (
	idle      standing = iota // it has none open, and always may
	busy                      // it may while the window has room
	full                      // it has as much open as the window holds, and may not
	standings = iota
)

func (w *window) standingOf(u *user) standing {
	switch n := u.published(); {
	case n == 0:
		return idle
	case n < w.milliCPU:
		return busy
	}
	return full
}

// admits reports whether users of a standing may publish a job now.
func (w *window) admits(in standing) bool {
	return w.milliCPU > 0 && (in == idle || in == busy && w.used < w.milliCPU)
}

// enqueue puts a user into the queue where it belongs, if it has held jobs.
func (w *window) enqueue(u *user) {
	in := w.standingOf(u)
	if u.at >= 0 && (u.heldJobs == 0 || in != u.in) {
		heap.Remove(&w.queues[u.in], u.at)
	}
	switch {
	case u.heldJobs == 0:
	case u.at < 0:
		u.in = in
		heap.Push(&w.queues[in], u)
	default:
		heap.Fix(&w.queues[in], u.at)
	}
}

// before reports whether it is a user's turn before another's: who has used least of its shares first.
func (u *user) before(other *user) bool {
	return cmp.Or(cmp.Compare(u.key, other.key), cmp.Compare(u.name, other.name)) < 0
}

// turns is a heap of users with held jobs and one standing, so that who is next is found at the tops of a few.
type turns []*user

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, k int) bool { return t[i].before(t[k]) }
func (t turns) Swap(i, k int)      { t[i], t[k] = t[k], t[i]; t[i].at, t[k].at = i, k }
func (t *turns) Push(x any)        { u := x.(*user); u.at = len(*t); *t = append(*t, u) }

func (t *turns) Pop() any {
	last := len(*t) - 1
	u := (*t)[last]
	(*t)[last], *t, u.at = nil, (*t)[:last], -1
	return u
}
