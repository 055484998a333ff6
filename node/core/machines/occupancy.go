package machines

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// occupancy is what attempts take on the machines now.
type occupancy struct {
	all  map[string]command.Resources // by machine
	home map[string]command.Resources // of these, what was started outside the log
	// The attempts themselves, likewise.
	tasks, homeTasks map[string]int64
}

func newOccupancy() occupancy {
	return occupancy{
		all: map[string]command.Resources{}, home: map[string]command.Resources{},
		tasks: map[string]int64{}, homeTasks: map[string]int64{},
	}
}

// add counts an attempt in (sign 1) or out (sign −1).
func (o *occupancy) add(machine string, r executor.Resources, home bool, sign int64) {
	need := command.Resources{MilliCPU: sign * r.MilliCPU, MemMiB: sign * r.MemMiB, GPU: sign * r.GPU}
	count(o.all, o.tasks, machine, need, sign)
	if home {
		count(o.home, o.homeTasks, machine, need, sign)
	}
}

// count adds one attempt's need to a machine's. Without attempts a machine is not
// kept: the names of a cluster's nodes come and go.
func count(all map[string]command.Resources, tasks map[string]int64, machine string, need command.Resources,
	sign int64,
) {
	all[machine] = plus(all[machine], need)
	if tasks[machine] += sign; tasks[machine] == 0 {
		delete(all, machine)
		delete(tasks, machine)
	}
}

func plus(a, b command.Resources) command.Resources {
	return command.Resources{MilliCPU: a.MilliCPU + b.MilliCPU, MemMiB: a.MemMiB + b.MemMiB, GPU: a.GPU + b.GPU}
}

// fits reports whether need fits in total less used.
func fits(total, used, need command.Resources) bool {
	return used.MilliCPU+need.MilliCPU <= total.MilliCPU &&
		used.MemMiB+need.MemMiB <= total.MemMiB &&
		used.GPU+need.GPU <= total.GPU
}
