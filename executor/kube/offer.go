package kube

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
)

// calm is how long changes of the cluster are gathered before they are told: each
// that is told becomes an entry of the federation's log.
const calm = time.Second

// offer is what of the cluster the federation may use.
type offer struct {
	log       zerolog.Logger
	threshold int              // see Config
	foreign   executor.Network // see Config
	works     *workSet
	view      *clusterView
	reach     *reach
	dirty     chan struct{} // capacity 1: the offer may be another

	// The rest is guarded by workSet.mu.

	// held is what attempts that have not ended need, by machine.
	held     map[string]executor.Resources
	machines []executor.Machine // told last
}

// changed has the offer rebuilt soon.
func (o *offer) changed() {
	select {
	case o.dirty <- struct{}{}:
	default:
	}
}

// run tells what the cluster has, whenever that has changed.
func (o *offer) run(ctx context.Context) {
	for {
		select {
		case <-o.dirty:
		case <-ctx.Done():
			return
		}
		o.measure()
		select { // what comes meanwhile is one change
		case <-time.After(calm):
		case <-ctx.Done():
			return
		}
	}
}

// measure computes the machines; a difference is told.
func (o *offer) measure() {
	nodes := o.view.nodes.all()
	o.works.mu.Lock()
	defer o.works.mu.Unlock()
	var out []executor.Machine
	for _, n := range nodes {
		if n.closed != "" || o.reach.away() != nil {
			continue
		}
		r := exposed(n.has, o.view.others(n.name), o.threshold)
		if r.MilliCPU > 0 {
			out = append(out, executor.Machine{
				Name: machineOf(n.name), Resources: r, Runs: executor.RunsImages,
				Labels: n.labels, Network: o.foreign,
			})
		}
	}
	slices.SortFunc(out, func(a, b executor.Machine) int { return strings.Compare(a.Name, b.Name) })
	if len(out) > maxMachines {
		o.log.Warn().Int("nodes", len(out)).Int("used", maxMachines).Msg("the cluster has more nodes than a site can offer: choose some by the node selector")
		out = out[:maxMachines]
	}
	if n := withoutLabels(out); n > 0 {
		o.log.Warn().Int("kinds", n).Int("most", maxKinds).Msg("the nodes' labels tell too many kinds of nodes apart, and are left out: name fewer in node_labels")
	}
	if !slices.Equal(out, o.machines) {
		o.machines = out
		o.works.attempts.Events.Put(executor.Event{Capacity: true})
	}
}

// withdraw offers nothing while the API is away. REQUIRES: workSet.mu held.
func (o *offer) withdraw() {
	if o.machines != nil {
		o.machines = nil
		o.works.attempts.Events.Put(executor.Event{Capacity: true})
	}
}

// maxMachines of a handler: an offer of the federation has ten thousand.
const maxMachines = 9000

// capacity returns what is offered.
func (o *offer) capacity() []executor.Machine {
	o.works.mu.Lock()
	defer o.works.mu.Unlock()
	return slices.Clone(o.machines)
}

// sum returns what is offered together, and on how many nodes. REQUIRES: workSet.mu held.
func (o *offer) sum() (sum executor.Resources, nodes int) {
	for _, m := range o.machines {
		sum = plus(sum, m.Resources)
	}
	return sum, len(o.machines)
}

// checkRoom says why a task has no room on a node now, with what others request by now.
// REQUIRES: workSet.mu held.
func (o *offer) checkRoom(t executor.Task, n *node) error {
	free := minus(exposed(n.has, o.view.others(n.name), o.threshold), o.held[t.Machine])
	return n.room(t.Need, free)
}

// hold takes a task's room. REQUIRES: workSet.mu held.
func (o *offer) hold(t executor.Task) { o.held[t.Machine] = plus(o.held[t.Machine], t.Need) }

// release gives the attempt's room back. REQUIRES: workSet.mu held.
func (o *offer) release(w *work) {
	o.held[w.Task.Machine] = minus(o.held[w.Task.Machine], w.Task.Need)
	if o.held[w.Task.Machine] == (executor.Resources{}) {
		delete(o.held, w.Task.Machine)
	}
}
