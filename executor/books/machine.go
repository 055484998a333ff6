package books

import "golang.org/x/sys/unix"

// AllowedCPUs are the CPUs that this process may use, in order.
func AllowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return []int{0}
	}
	cpus := make([]int, 0, set.Count())
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// PhysicalMiB is the memory of the machine.
func PhysicalMiB() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit) >> 20) //nolint:unconvert // Totalram is 32 bits wide on some machines.
}
