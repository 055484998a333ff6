package fsm

import (
	"strings"

	"github.com/cloudshare/cloudshare/sched"
)

// A class's lanes are a heap ordered by whose turn it is. It is rebuilt at most once an entry, when it is
// first needed for a machine: ranks change with the log's time.

// rankOf returns a site's rank, computed once an entry.
func (s *ranking) rankOf(x *site) *sched.Rank {
	if x.rankAt != s.index {
		x.rank = s.policy.Rank(s.ranked(x), s.quanta(s.time))
		x.rankAt = s.index
	}
	return &x.rank
}

// before reports whether a's owner goes before b's: the greater rank, then the older head (by queue time,
// then arrival), then the site's id. The caller applies the first tie break, the owner of the offered
// machine.
func (s *ranking) before(a, b *lane) bool {
	if c := s.rankOf(a.owner).Compare(*s.rankOf(b.owner)); c != 0 {
		return c > 0
	}
	return older(a, b)
}

func older(a, b *lane) bool {
	if a.queuedMs != b.queuedMs {
		return a.queuedMs < b.queuedMs
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return strings.Compare(a.owner.name, b.owner.name) < 0
}

// heap orders a class's lanes by the ranks of this entry.
func (s *ranking) heap(c *class) {
	if c.heapAt == s.index {
		return
	}
	c.heapAt = s.index
	s.steps.used += uint64(len(c.lanes)) * stepLook
	for i := len(c.lanes)/2 - 1; i >= 0; i-- {
		s.sink(c, i)
	}
}

func (s *ranking) fixHeap(c *class, i int) {
	if !s.sink(c, i) {
		s.lift(c, i)
	}
}

func (s *ranking) sink(c *class, i int) (moved bool) {
	for {
		k := 2*i + 1
		if k >= len(c.lanes) {
			return moved
		}
		if k+1 < len(c.lanes) && s.before(c.lanes[k+1], c.lanes[k]) {
			k++
		}
		if !s.before(c.lanes[k], c.lanes[i]) {
			return moved
		}
		c.swap(i, k)
		i, moved = k, true
	}
}

func (s *ranking) lift(c *class, i int) {
	for i > 0 && s.before(c.lanes[i], c.lanes[(i-1)/2]) {
		c.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (c *class) swap(i, k int) {
	c.lanes[i], c.lanes[k] = c.lanes[k], c.lanes[i]
	c.lanes[i].heapAt, c.lanes[k].heapAt = i, k
}

// leaveHeap removes a lane from its class.
func (s *ranking) leaveHeap(l *lane) {
	c, i, last := l.class, l.heapAt, len(l.class.lanes)-1
	if i < 0 {
		return
	}
	c.swap(i, last)
	c.lanes[last] = nil
	c.lanes = c.lanes[:last]
	l.heapAt = -1
	if i < last && c.heapAt == s.index {
		s.fixHeap(c, i)
	}
}

// rerank updates the heaps that a site is in after its rank changed.
func (s *ranking) rerank(x *site) {
	x.rankAt = 0
	for _, l := range x.lanes {
		if l.heapAt >= 0 && l.class.heapAt == s.index {
			s.fixHeap(l.class, l.heapAt)
		}
	}
}
