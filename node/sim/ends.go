package sim

import "github.com/cloudshare/cloudshare/executor"

// end is a task that runs and when it will end.
type end struct {
	at   int64
	n    int // position in the order of starts
	task int
	site int // executor
	id   executor.ID
}

func (e *end) before(o *end) bool { return e.at < o.at || e.at == o.at && e.n < o.n }

// endQueue holds what runs, the first to end first; equal ones as they started. Those
// entered in the order in which they end, as equal tasks are, stand in a line.
type endQueue struct {
	line  []end // from head on
	head  int
	other endHeap
}

func (q *endQueue) empty() bool { return q.head == len(q.line) && len(q.other) == 0 }

// inLine reports whether the first stands in the line. REQUIRES: not empty.
func (q *endQueue) inLine() bool {
	if len(q.other) == 0 || q.head == len(q.line) {
		return len(q.other) == 0
	}
	return q.line[q.head].before(&q.other[0])
}

// at returns when the first ends. REQUIRES: not empty.
func (q *endQueue) at() int64 {
	if q.inLine() {
		return q.line[q.head].at
	}
	return q.other[0].at
}

func (q *endQueue) push(e end) {
	if n := len(q.line); n > q.head && e.before(&q.line[n-1]) {
		q.other.push(e)
		return
	}
	if q.head > len(q.line)/2 {
		q.line, q.head = q.line[:copy(q.line, q.line[q.head:])], 0
	}
	q.line = append(q.line, e)
}

// pop takes the first. REQUIRES: not empty.
func (q *endQueue) pop() end {
	if !q.inLine() {
		return q.other.pop()
	}
	q.head++
	return q.line[q.head-1]
}

// endHeap has the first to end at [0].
type endHeap []end

func (h *endHeap) push(e end) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(&s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

// pop takes the first. REQUIRES: len(h) > 0.
func (h *endHeap) pop() end {
	s := *h
	first, last := s[0], len(s)-1
	s[0] = s[last]
	s[last] = end{}
	s = s[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && s[c+1].before(&s[c]) {
			c++
		}
		if !s[c].before(&s[i]) {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return first
}
