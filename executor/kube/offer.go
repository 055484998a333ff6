package kube

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// calm is how long changes of the cluster are gathered before they are told: each
// that is told becomes an entry of the federation's log.
const calm = time.Second

// changes has the offer rebuilt soon.
func (h *Handler) changes() {
	select {
	case h.dirty <- struct{}{}:
	default:
	}
}

// offer tells what the cluster has, whenever that has changed.
func (h *Handler) offer(ctx context.Context) {
	defer h.life.Done()
	for {
		select {
		case <-h.dirty:
		case <-ctx.Done():
			return
		}
		h.measure()
		select { // what comes meanwhile is one change
		case <-time.After(calm):
		case <-ctx.Done():
			return
		}
	}
}

// measure computes the machines; a difference is told.
func (h *Handler) measure() {
	nodes := h.view.nodes.all()
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	var out []executor.Machine
	for _, n := range nodes {
		if n.closed != "" || h.reach.away() != nil {
			continue
		}
		r := exposed(n.has, h.view.others(n.name), h.cfg.Threshold)
		if r.MilliCPU > 0 {
			out = append(out, executor.Machine{
				Name: machineOf(n.name), Resources: r, Runs: executor.RunsImages,
				Labels: n.labels,
			})
		}
	}
	slices.SortFunc(out, func(a, b executor.Machine) int { return strings.Compare(a.Name, b.Name) })
	if len(out) > maxMachines {
		h.cfg.Logger.Warn().Int("nodes", len(out)).Int("used", maxMachines).Msg("the cluster has more nodes than a site can offer: choose some by the node selector")
		out = out[:maxMachines]
	}
	if n := withoutLabels(out); n > 0 {
		h.cfg.Logger.Warn().Int("kinds", n).Int("most", maxKinds).Msg("the nodes' labels tell too many kinds of nodes apart, and are left out: name fewer in node_labels")
	}
	if !slices.Equal(out, h.machines) {
		h.machines = out
		h.works.attempts.Events.Put(executor.Event{Capacity: true})
	}
}

// withdraw offers nothing while the API is away. REQUIRES: workSet.mu held.
func (h *Handler) withdraw() {
	if h.machines != nil {
		h.machines = nil
		h.works.attempts.Events.Put(executor.Event{Capacity: true})
	}
}

// maxMachines of a handler: an offer of the federation has ten thousand.
const maxMachines = 9000

// Capacity implements executor.Handler: nothing while the API is away.
func (h *Handler) Capacity() []executor.Machine {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	return slices.Clone(h.machines)
}

// Published implements executor.Handler; a cluster is asked for no room before
// there is a task for it.
func (h *Handler) Published(executor.Demand) {}
