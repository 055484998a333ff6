package gates

import "time"

// PauseMs returns for how many milliseconds a task is held after a failure, the first or a later one:
//
//	base  = min(backoff · 2^(failures−1), backoff_max)
//	pause = base − base/4 · u,   0 ≤ u < 1
//
// u is a hash of the job's id, the task's position and the failures: tasks that fail together do not begin together
// again, and every broker, and a later run of it, finds the same. It is never longer than backoff_max, nor shorter
// than three quarters of base.
func (r *Rules) PauseMs(task, failures uint32) int64 {
	base := int64(r.Retry.Backoff / time.Millisecond)
	longest := int64(r.Retry.BackoffMax / time.Millisecond)
	for n := uint32(1); n < failures && base < longest; n++ {
		base *= 2 // at most 2 · MaxBackoff
	}
	base = min(base, longest)
	return base - base/4*int64(r.hash(task, failures)>>48)>>16
}

// hash mixes a task's identity: FNV-1a, and the finalizer of MurmurHash3, for the last bytes differ most.
func (r *Rules) hash(task, failures uint32) uint64 {
	h := uint64(14695981039346656037)
	add := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range len(r.Job.Site) {
		add(r.Job.Site[i])
	}
	for _, n := range [...]uint64{r.Job.Num, uint64(task), uint64(failures)} {
		for shift := 0; shift < 64; shift += 8 {
			add(byte(n >> shift))
		}
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
