package fsm

import "fmt"

// checkGates compares what sites remember of their searches past declined jobs with the jobs themselves.
func (s *State) checkGates() error {
	for _, x := range s.sites {
		for _, l := range x.lanes {
			for _, d := range l.depths {
				if y := s.sites[d.site]; d.offers == y.offers {
					if err := s.checkDepth(l, d.order, y); err != nil {
						return fmt.Errorf("lane of %s: %w", x.name, err)
					}
				}
			}
			for q := range l.queues.All() {
				if err := s.checkQueueGates(*q); err != nil {
					return fmt.Errorf("lane of %s: %w", x.name, err)
				}
			}
		}
	}
	return nil
}

// checkDepth compares how far down a lane a site has searched.
func (s *State) checkDepth(l *lane, order int32, x *site) error {
	for _, seq := range l.seqsInOrder() {
		if j := s.jobs.Get(seq); j.order > order && !j.isBarred(x) {
			return fmt.Errorf("%s searches from order %d on, job %d of order %d is open to it", x.name, order, seq, j.order)
		}
	}
	return nil
}

// checkQueueGates compares how far sites have searched a queue.
func (s *State) checkQueueGates(q *queue) error {
	for i := range q.gates {
		g := &q.gates[i]
		x := s.sites[g.site]
		if g.offers != x.offers {
			continue
		}
		open := map[uint64]bool{}
		for seq := range g.open.All() {
			open[*seq] = true
			if j := s.jobs.Get(*seq); j != nil && j.order != q.order { // even if it runs: it may wait again
				return fmt.Errorf("the gate of %s has job %d of another queue than %d", x.name, *seq, q.order)
			}
		}
		for seq := range q.seqs.All() {
			if *seq < g.from && !open[*seq] && !s.jobs.Get(*seq).isBarred(x) {
				return fmt.Errorf("%s searches from job %d on, job %d is open to it", x.name, g.from, *seq)
			}
		}
	}
	return nil
}
