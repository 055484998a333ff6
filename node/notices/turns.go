package notices

import (
	"container/heap"
	"time"
)

// ref names a notice: the place of a hook of a job of this site.
type ref struct {
	num uint64
	at  int
}

// dueNotice is a notice with the moment, in unix milliseconds, before which it is not sent.
type dueNotice struct {
	ref
	when int64
}

// lane is what one user sends to one host. Lanes take turns, so that a host that is slow or away, and a user who sends
// much, hold up nobody else.
type lane struct {
	user, host string
	line       dueHeap
	going      int
	failures   int   // in a row
	rest       int64 // the host is not asked before, unix milliseconds
	place      int   // in the heap of lanes, -1 = it is not there
}

// when returns the moment at which the lane's first notice may go.
func (l *lane) when() int64 { return max(l.rest, l.line[0].when) }

// most is how many of the lane's may be under way: one while nobody knows whether the host answers again.
func (l *lane) most() int {
	if l.failures > 0 {
		return 1
	}
	return atOnceLane
}

// turns says which notice goes next. One goroutine owns it; it reads no clock.
type turns struct {
	lanes map[[2]string]*lane // by user and host. Invariant: none that is empty and has nothing under way
	ready laneHeap            // those that may send by their own bounds and their user's
	users map[string]int      // under way, by user. Invariant: no zeros
	going int
}

func newTurns() *turns { return &turns{lanes: map[[2]string]*lane{}, users: map[string]int{}} }

// add puts a notice in its lane.
func (t *turns) add(user, host string, d dueNotice) {
	key := [2]string{user, host}
	l := t.lanes[key]
	if l == nil {
		l = &lane{user: user, host: host, place: -1}
		t.lanes[key] = l
	}
	heap.Push(&l.line, d)
	t.arrange(l)
}

// next returns a notice that goes now and its lane, which is told by done; without one, in how long there may be, 0 =
// nothing waits for a moment.
func (t *turns) next(now int64) (ref, *lane, time.Duration) {
	if t.going >= atOnce || len(t.ready) == 0 {
		return ref{}, nil, 0
	}
	l := t.ready[0]
	if w := l.when() - now; w > 0 {
		return ref{}, nil, time.Duration(w) * time.Millisecond
	}
	d, _ := heap.Pop(&l.line).(dueNotice)
	l.going++
	t.going++
	t.users[l.user]++
	t.arrangeUser(l)
	return d.ref, l, 0
}

// done takes the outcome of a notice that next has returned. again, if not 0, is when it is tried next.
func (t *turns) done(l *lane, r ref, o outcome, again, now int64) {
	l.going--
	t.going--
	if t.users[l.user]--; t.users[l.user] == 0 {
		delete(t.users, l.user)
	}
	l.failures, l.rest = l.failures+1, now+restAfter(l.failures+1).Milliseconds()
	if !o.away {
		l.failures, l.rest = 0, 0
	}
	if again != 0 {
		heap.Push(&l.line, dueNotice{r, again})
	}
	t.arrangeUser(l)
}

// restAfter returns for how long a host is left alone after so many failures in a row.
func restAfter(failures int) time.Duration {
	d := restFirst
	for ; failures > 1 && d < restMost; failures-- {
		d *= 2
	}
	return min(d, restMost)
}

// arrangeUser puts all lanes of a user in their places, whose bound has changed with one of them.
func (t *turns) arrangeUser(l *lane) {
	n := t.users[l.user]
	t.arrange(l)
	if n != atOnceUser && n != atOnceUser-1 {
		return // it was not at the bound before, and is not now
	}
	for _, other := range t.lanes {
		if other.user == l.user {
			t.arrange(other)
		}
	}
}

// arrange puts a lane where it belongs.
func (t *turns) arrange(l *lane) {
	may := len(l.line) > 0 && l.going < l.most() && t.users[l.user] < atOnceUser
	switch {
	case may && l.place < 0:
		heap.Push(&t.ready, l)
	case may:
		heap.Fix(&t.ready, l.place)
	case l.place >= 0:
		heap.Remove(&t.ready, l.place)
	}
	if len(l.line) == 0 && l.going == 0 {
		delete(t.lanes, [2]string{l.user, l.host})
	}
}

// resting calls f for each notice whose host could not be reached; those for which it returns true go.
func (t *turns) resting(f func(ref) bool) {
	for _, l := range t.lanes {
		if l.failures == 0 {
			continue
		}
		kept := l.line[:0]
		for _, d := range l.line {
			if !f(d.ref) {
				kept = append(kept, d)
			}
		}
		l.line = kept
		heap.Init(&l.line)
		t.arrange(l)
	}
}

// dueHeap has the earliest first.
type dueHeap []dueNotice

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].when < h[j].when }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	d, _ := x.(dueNotice)
	*h = append(*h, d)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	*h = (*h)[:last]
	return d
}

// laneHeap has the lane first whose first notice is due earliest.
type laneHeap []*lane

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i].when() < h[j].when() }
func (h laneHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *laneHeap) Push(x any) {
	l, _ := x.(*lane)
	l.place = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	*h = (*h)[:last]
	l.place = -1
	return l
}
