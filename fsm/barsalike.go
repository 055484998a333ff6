package fsm

// maxAlike bounds how many more jobs an Unopened decline bars.
const maxAlike = 64

// barAlike keeps the next of an owner's waiting jobs, of the same class as seq, from x until x's next offer: x has got
// no key for seq's task, and would hardly get one for theirs. Else an owner that gives none, to which a decline costs
// nothing, would keep x's machines from others' jobs for as many entries as it has jobs.
func (s *holding) barAlike(seq uint64, x *site) {
	j := s.jobs.Get(seq)
	l := s.sites[j.owner].findLane(j.class)
	for range maxAlike {
		if l == nil {
			return
		}
		next, ok := s.find(l, x)
		if !ok {
			return
		}
		s.steps.used += stepLook
		s.bar(next.seq, s.mutJob(next.seq), x)
	}
}
