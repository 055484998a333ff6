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

// endHeap holds what runs, the first to end at [0]; equal ones as they started.
type endHeap []end

func (h endHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}

func (h *endHeap) push(e end) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
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
		if c+1 < last && s.less(c+1, c) {
			c++
		}
		if !s.less(c, i) {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return first
}
