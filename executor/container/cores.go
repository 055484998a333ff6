package container

// limit says how the engine holds tasks to the cores that they asked for.
type limit uint8

const (
	byQuota   limit = iota // a time of the processors, by the container's cgroup
	byCPUs                 // processors that are given out
	byNothing              // the engine's machine can do neither
	limits
)

// limitWords say so to people.
var limitWords = [limits]string{
	byQuota:   "cores are limited by the engine",
	byCPUs:    "tasks are pinned to their cores by the engine",
	byNothing: "cores are not limited: the engine's machine has a cgroup neither for processor time nor for CPUs",
}

// limit returns how tasks are held now.
func (h *Handler) limit() limit {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.presence.limitBy(&h.cfg)
}
