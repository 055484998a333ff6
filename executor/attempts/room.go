package attempts

import (
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
)

// Room counts what is taken of a machine. Not safe for concurrent use.
type Room struct {
	machine          string
	milli, freeMilli int64 // after a restart with fewer cores than attempts freeMilli is negative
	mem, freeMem     int64
	// cpus are given out to attempts; nil: no attempt is pinned.
	cpus *processors
}

// Hold is what one attempt takes.
type Hold struct {
	MilliCPU int64
	MemMiB   int64
	CPUs     []int // that it is pinned to, if attempts are
}

// NewRoom returns that of an empty machine; cpus are given out to attempts, nil = no
// attempt is pinned.
func NewRoom(machine string, cores int, memMiB int64, cpus []int) *Room {
	r := &Room{machine: machine, milli: int64(cores) * 1000, mem: memMiB, freeMem: memMiB}
	r.freeMilli = r.milli
	if len(cpus) > 0 {
		r.cpus = &processors{all: append([]int{}, cpus...), load: map[int]int64{}}
	}
	return r
}

// Use has the attempts that come pinned to these CPUs: those of the machine may
// change. Without pinning it does nothing.
func (r *Room) Use(cpus []int) {
	if r.cpus != nil && len(cpus) > 0 {
		r.cpus.all = append([]int{}, cpus...)
	}
}

// holdOf returns what an attempt takes; even one that asks for nothing has a process.
func holdOf(need executor.Resources) Hold {
	return Hold{MilliCPU: max(need.MilliCPU, 1), MemMiB: need.MemMiB}
}

// Fit says why a task can never run here: an executor.ErrUnfit, or nil.
func (r *Room) Fit(t executor.Task) error {
	switch {
	case t.Need.GPU > 0:
		return fmt.Errorf("%w: %d GPUs wanted, none here", executor.ErrUnfit, t.Need.GPU)
	case t.Need.MilliCPU > r.milli:
		return fmt.Errorf("%w: %d milli-cores wanted, the machine lends %d cores", executor.ErrUnfit, t.Need.MilliCPU, r.milli/1000)
	case t.Need.MemMiB < 0 || t.Need.MemMiB > r.mem:
		return fmt.Errorf("%w: %d MiB wanted, the machine lends %d", executor.ErrUnfit, t.Need.MemMiB, r.mem)
	case t.Machine != "" && t.Machine != r.machine:
		return fmt.Errorf("%w: no machine %q here, only %q", executor.ErrUnfit, t.Machine, r.machine)
	}
	return nil
}

// leastShare is the least limit of memory of a task that asks for none, in MiB: it must start.
const leastShare = 64

// MemLimit returns a task's limit of memory in MiB, 0 = none: what it asked for, else a share by its cores, of so much
// for each; 0 = it has no share.
func MemLimit(need executor.Resources, perCore int64) int64 {
	if need.MemMiB > 0 || perCore == 0 {
		return need.MemMiB
	}
	return max(perCore*need.MilliCPU/1000, leastShare)
}

// Take reserves room; without any it is executor.ErrBusy.
func (r *Room) Take(need executor.Resources) (Hold, error) {
	h := holdOf(need)
	if h.MilliCPU > r.freeMilli || h.MemMiB > r.freeMem {
		return Hold{}, fmt.Errorf("%w: %d milli-cores and %d MiB wanted, %d and %d free",
			executor.ErrBusy, h.MilliCPU, h.MemMiB, max(r.freeMilli, 0), max(r.freeMem, 0))
	}
	if r.cpus != nil {
		h.CPUs = r.cpus.choose(h.MilliCPU)
	}
	r.count(h, 1)
	return h, nil
}

// count enters a hold (sign 1), or takes it out (sign −1).
func (r *Room) count(h Hold, sign int64) {
	r.freeMilli -= sign * h.MilliCPU
	r.freeMem -= sign * h.MemMiB
	if r.cpus != nil {
		r.cpus.add(h, sign)
	}
}

// Adopt counts an attempt that runs already, whether it fits or not; cpus are those
// that it is pinned to.
func (r *Room) Adopt(need executor.Resources, cpus []int) Hold {
	h := holdOf(need)
	h.CPUs = cpus
	r.count(h, 1)
	return h
}

// Release gives back what was taken.
func (r *Room) Release(h Hold) { r.count(h, -1) }
