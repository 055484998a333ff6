package kube

import (
	corev1 "k8s.io/api/core/v1"
)

// clusterView is what the watches show: our Jobs, pods and nodes, and where the pods are.
type clusterView struct {
	api       *api
	decoder   *decoder
	dedicated bool // see Config
	works     *workSet
	changed   func() // the offer may be another

	// Each has a lock of its own, under which nothing else is taken.
	jobs  *mirror[jobView]
	pods  *mirror[podView]
	nodes *mirror[node]

	// The rest is guarded by workSet.mu: what a pod takes depends on whose it is.

	// onNode are the pods that take something of a node, ofJob those of ours.
	onNode, ofJob map[string]map[*podView]bool
}

func newClusterView(a *api, d *decoder, dedicated bool, works *workSet, changed func()) *clusterView {
	c := &clusterView{
		api: a, decoder: d, dedicated: dedicated, works: works, changed: changed,
		onNode: map[string]map[*podView]bool{}, ofJob: map[string]map[*podView]bool{},
	}
	c.jobs = newMirror(readJob, c.changedJob)
	c.pods = newMirror(d.readPod, c.changedPod)
	c.nodes = newMirror(d.readNode, c.changedNode)
	return c
}

// isSynced reports whether everything was listed once.
func (c *clusterView) isSynced() bool {
	return c.jobs.isSynced() && c.pods.isSynced() && c.nodes.isSynced()
}

// changedPod keeps where pods are, and has their Jobs looked at.
func (c *clusterView) changedPod(was, is *podView) {
	c.works.mu.Lock()
	if was != nil {
		unseat(c.onNode, was.node, was)
		unseat(c.ofJob, was.job, was)
	}
	if is != nil && !is.over {
		seat(c.onNode, is.node, is)
	}
	if is != nil && is.podState != nil {
		seat(c.ofJob, is.job, is)
	}
	c.works.mu.Unlock()
	for _, v := range []*podView{was, is} {
		if v != nil && v.podState != nil && v.job != "" {
			if v == was && is == nil { // its last words, for a Job that was not looked at in time
				c.lastWords(v)
			}
			c.works.queue.Add(v.job)
			break
		}
	}
	c.changed()
}

// lastWords keeps what is known of a pod that is gone.
func (c *clusterView) lastWords(v *podView) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if w := c.works.byJob[v.job]; w != nil && w.Ended == nil {
		w.seen, w.made = true, true
		if w.let == "" || v.name == w.let || !v.gated {
			w.pod = v
		}
	}
}

// podOf returns the pod of a Job, nil = none. Of an attempt that has not ended it is the one
// that was let go, if one was: another one that waits at its gate, made beside it or
// behind its end, never runs, and says nothing.
func (c *clusterView) podOf(job string) (pod *podView) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	let := ""
	if w := c.works.byJob[job]; w != nil && w.Ended == nil && !w.declined {
		let = w.let
	}
	for v := range c.ofJob[job] {
		switch {
		case let != "" && v.name != let && v.gated:
		case pod == nil, v.name == let, pod.name != let && pod.gated && (!v.gated || v.name < pod.name):
			pod = v
		}
	}
	return pod
}

// others returns what is requested on a node by all but our running attempts, for which
// their own need counts. REQUIRES: workSet.mu held.
func (c *clusterView) others(node string) (sum amounts) {
	for v := range c.onNode[node] {
		if w := c.works.byJob[v.job]; v.podState != nil && w != nil && w.Ended == nil {
			continue
		}
		sum = sum.plus(v.asks)
	}
	return sum
}

func (c *clusterView) changedNode(_, is *node) {
	if is != nil && !is.ready { // attempts there may be out of sight
		c.works.mu.Lock()
		for v := range c.onNode[is.name] {
			if v.podState != nil {
				c.works.queue.Add(v.job)
			}
		}
		c.works.mu.Unlock()
	}
	c.changed()
}

func (c *clusterView) changedJob(was, is *jobView) {
	for _, v := range []*jobView{was, is} {
		if v != nil {
			c.works.queue.Add(v.name)
			return
		}
	}
}

// isReplaced: there is a pod of the attempt's Job, but not the one that was let go.
// REQUIRES: podOf has none to show.
func (c *clusterView) isReplaced(w *work) bool {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	return w.let != "" && len(c.ofJob[w.job]) > 0
}

// leaving: a pod of ours on that machine has ended, and Kubernetes counts it still.
func (c *clusterView) leaving(machine string) bool {
	name, _ := nodeOf(machine)
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	for _, pods := range c.ofJob {
		for v := range pods {
			if v.node == name && v.over && v.phase != corev1.PodSucceeded && v.phase != corev1.PodFailed {
				return true
			}
		}
	}
	return false
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
