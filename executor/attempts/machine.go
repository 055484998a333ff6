package attempts

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// AllowedCPUs returns the CPUs that this process may use, in order.
func AllowedCPUs() []int {
	cpus, err := affinity()
	if err != nil {
		return []int{0}
	}
	return cpus
}

// PinnableCPUs returns the CPUs that attempts may be pinned to, in order: those of this
// process, which may be fewer than the machine has. An error says why none may.
func PinnableCPUs() ([]int, error) {
	cpus, err := affinity()
	if err != nil {
		return nil, err
	}
	// Once as a try: a filter of system calls may forbid it.
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("set the CPUs of a process: %w", err)
	}
	return cpus, nil
}

func affinity() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the CPUs of this process: %w", err)
	}
	cpus := make([]int, 0, set.Count())
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

// PhysicalMiB returns the memory of the machine.
func PhysicalMiB() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	//nolint:unconvert // Totalram is 32 bits wide on some machines.
	return int64(uint64(info.Totalram) * uint64(info.Unit) >> 20)
}
