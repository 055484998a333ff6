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

// changedPod keeps where pods are, and has their Jobs looked at.
func (h *Handler) changedPod(was, is *podView) {
	h.works.mu.Lock()
	if was != nil {
		unseat(h.onNode, was.node, was)
		unseat(h.ofJob, was.job, was)
	}
	if is != nil && !is.over {
		seat(h.onNode, is.node, is)
	}
	if is != nil && is.podState != nil {
		seat(h.ofJob, is.job, is)
	}
	h.works.mu.Unlock()
	for _, v := range []*podView{was, is} {
		if v != nil && v.podState != nil && v.job != "" {
			if v == was && is == nil { // its last words, for a Job that was not looked at in time
				h.lastWords(v)
			}
			h.works.queue.Add(v.job)
			break
		}
	}
	h.changes()
}

// lastWords keeps what is known of a pod that is gone.
func (h *Handler) lastWords(v *podView) {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	if w := h.works.byJob[v.job]; w != nil && w.Ended == nil {
		w.seen, w.made = true, true
		if w.let == "" || v.name == w.let || !v.gated {
			w.pod = v
		}
	}
}

func seat(at map[string]map[*podView]bool, key string, v *podView) {
	if key == "" {
		return
	}
	if at[key] == nil {
		at[key] = map[*podView]bool{}
	}
	at[key][v] = true
}

func unseat(at map[string]map[*podView]bool, key string, v *podView) {
	delete(at[key], v)
	if len(at[key]) == 0 {
		delete(at, key)
	}
}

// podOf returns the pod of a Job, nil = none. Of an attempt that has not ended it is the one
// that was let go, if one was: another one that waits at its gate, made beside it or
// behind its end, never runs, and says nothing.
func (h *Handler) podOf(job string) (pod *podView) {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	let := ""
	if w := h.works.byJob[job]; w != nil && w.Ended == nil && !w.declined {
		let = w.let
	}
	for v := range h.ofJob[job] {
		switch {
		case let != "" && v.name != let && v.gated:
		case pod == nil, v.name == let, pod.name != let && pod.gated && (!v.gated || v.name < pod.name):
			pod = v
		}
	}
	return pod
}

// others returns what is requested on a node by all but our running attempts, for which
// their own need counts. REQUIRES: h.works.mu held.
func (h *Handler) others(node string) (sum amounts) {
	for v := range h.onNode[node] {
		if w := h.works.byJob[v.job]; v.podState != nil && w != nil && w.Ended == nil {
			continue
		}
		sum = sum.plus(v.asks)
	}
	return sum
}

func (h *Handler) changedNode(_, is *node) {
	if is != nil && !is.ready { // attempts there may be out of sight
		h.works.mu.Lock()
		for v := range h.onNode[is.name] {
			if v.podState != nil {
				h.works.queue.Add(v.job)
			}
		}
		h.works.mu.Unlock()
	}
	h.changes()
}

func (h *Handler) changedJob(was, is *jobView) {
	for _, v := range []*jobView{was, is} {
		if v != nil {
			h.works.queue.Add(v.name)
			return
		}
	}
}

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
	nodes := h.nodes.all()
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	var out []executor.Machine
	for _, n := range nodes {
		if n.closed != "" || h.away() != nil {
			continue
		}
		r := exposed(n.has, h.others(n.name), h.cfg.Threshold)
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
