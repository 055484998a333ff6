package books

import (
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
)

// Room counts what is taken of a machine. Not safe for concurrent use.
type Room struct {
	machine          string
	cores, freeCores int
	mem, freeMem     int64
	// cpus not given to a pinned attempt; nil without pinning. After a restart
	// with fewer cores than attempts the free counts are negative.
	cpus []int
}

// Hold is what one attempt takes.
type Hold struct {
	Cores  int
	MemMiB int64
	CPUs   []int // its own, if attempts are pinned
}

// NewRoom is that of an empty machine; cpus are given out to attempts, nil = no
// attempt is pinned.
func NewRoom(machine string, cores int, memMiB int64, cpus []int) *Room {
	r := &Room{machine: machine, cores: cores, freeCores: cores, mem: memMiB, freeMem: memMiB}
	if cpus != nil {
		r.cpus = append([]int{}, cpus[:cores]...)
	}
	return r
}

// coresOf counts cores whole.
func coresOf(r executor.Resources) int {
	milli := max(r.MilliCPU, 1)
	return int((milli-1)/1000 + 1)
}

// Fit says why a task can never run here: an executor.ErrUnfit, or nil.
func (r *Room) Fit(t executor.Task) error {
	switch {
	case t.Need.GPU > 0:
		return fmt.Errorf("%w: %d GPUs wanted, none here", executor.ErrUnfit, t.Need.GPU)
	case t.Need.MilliCPU > int64(r.cores)*1000:
		return fmt.Errorf("%w: %d milli-cores wanted, the machine lends %d cores", executor.ErrUnfit, t.Need.MilliCPU, r.cores)
	case t.Need.MemMiB < 0 || t.Need.MemMiB > r.mem:
		return fmt.Errorf("%w: %d MiB wanted, the machine lends %d", executor.ErrUnfit, t.Need.MemMiB, r.mem)
	case t.Machine != "" && t.Machine != r.machine:
		return fmt.Errorf("%w: no machine %q here, only %q", executor.ErrUnfit, t.Machine, r.machine)
	}
	return nil
}

// Take reserves room; without any it is executor.ErrBusy.
func (r *Room) Take(need executor.Resources) (Hold, error) {
	h := Hold{Cores: coresOf(need), MemMiB: need.MemMiB}
	if h.Cores > r.freeCores || h.MemMiB > r.freeMem || (r.cpus != nil && h.Cores > len(r.cpus)) {
		return Hold{}, fmt.Errorf("%w: %d cores and %d MiB wanted, %d and %d free", executor.ErrBusy, h.Cores, h.MemMiB, r.freeCores, r.freeMem)
	}
	r.count(h)
	if r.cpus != nil {
		h.CPUs = append([]int{}, r.cpus[:h.Cores]...)
		r.cpus = append([]int{}, r.cpus[h.Cores:]...)
	}
	return h, nil
}

func (r *Room) count(h Hold) {
	r.freeCores -= h.Cores
	r.freeMem -= h.MemMiB
}

// Adopt counts an attempt that runs already, whether it fits or not; cpus were
// its own.
func (r *Room) Adopt(need executor.Resources, cpus []int) Hold {
	h := Hold{Cores: coresOf(need), MemMiB: need.MemMiB}
	r.count(h)
	if r.cpus == nil {
		return h
	}
	for _, c := range cpus {
		for i, free := range r.cpus {
			if free == c {
				r.cpus = append(r.cpus[:i], r.cpus[i+1:]...)
				h.CPUs = append(h.CPUs, c)
				break
			}
		}
	}
	return h
}

// Release gives back what was taken.
func (r *Room) Release(h Hold) {
	r.freeCores += h.Cores
	r.freeMem += h.MemMiB
	if r.cpus != nil {
		r.cpus = append(r.cpus, h.CPUs...)
	}
}
