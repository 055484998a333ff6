package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cloudshare/cloudshare/executor"
)

// machinePrefix begins the names of this handler's machines: each is a node. One machine for a whole cluster would
// promise four cores that lie on four nodes.
const machinePrefix = "kube/"

func machineOf(node string) string { return machinePrefix + node }

// nodeOf returns the node of a machine.
func nodeOf(machine string) (string, bool) { return strings.CutPrefix(machine, machinePrefix) }

// memStep is the granularity of memory in an offer: what others begin or end below it
// does not change the offer.
const memStep = 64

// node is what is known of one.
type node struct {
	name string
	has  amounts // allocatable
	// closed says why no pod of ours may go there, "" = it may.
	closed string
	// ready: its kubelet speaks.
	ready bool
	// disk is what its kubelet has for pods to write, in bytes; 0 = it does not count that.
	disk int64
	// labels of NodeLabels that it has, as executor.Machine has them.
	labels string
}

// amounts of a node, or of what is requested there.
type amounts struct {
	executor.Resources
	pods int64
}

func (a amounts) plus(b amounts) amounts {
	return amounts{plus(a.Resources, b.Resources), a.pods + b.pods}
}

func plus(a, b executor.Resources) executor.Resources {
	return executor.Resources{MilliCPU: a.MilliCPU + b.MilliCPU, MemMiB: a.MemMiB + b.MemMiB, GPU: a.GPU + b.GPU}
}

func minus(a, b executor.Resources) executor.Resources {
	return executor.Resources{MilliCPU: a.MilliCPU - b.MilliCPU, MemMiB: a.MemMiB - b.MemMiB, GPU: a.GPU - b.GPU}
}

// exposed returns what of a node the federation may use, of which others request some:
// max(0, ⌊(1−θ)·allocatable⌋ − others), the paper's threshold. It must be taken
// before what others request, so it is taken here, where that is known, and the
// machine is not [executor.Machine.Shared]; a site's reserve comes off later
// (node.Exposure), which makes no difference. Cores are whole, and no more than
// there are pods to be had.
func exposed(has, others amounts, threshold int) executor.Resources {
	percent := int64(100 - max(threshold, 0))
	left := func(has, others int64) int64 { return max(0, has*percent/100-others) }
	r := executor.Resources{
		MilliCPU: min(left(has.MilliCPU, others.MilliCPU), max(0, has.pods-others.pods)*1000),
		MemMiB:   left(has.MemMiB, others.MemMiB),
		GPU:      left(has.GPU, others.GPU),
	}
	r.MilliCPU -= r.MilliCPU % 1000
	r.MemMiB -= r.MemMiB % memStep
	return r
}

// checkFit says why a task can never run on a machine: an executor.ErrUnfit, or nil.
// m is nil if there is none of that name.
func checkFit(t executor.Task, m *node) error {
	switch {
	case t.Image == "":
		return fmt.Errorf("%w: no image, and a cluster runs nothing else", executor.ErrUnfit)
	case m == nil:
		return fmt.Errorf("%w: no node %q in the cluster", executor.ErrUnfit, t.Machine)
	case t.Need.MemMiB < 0 || t.Need.MilliCPU < 0 || t.Need.GPU < 0:
		return fmt.Errorf("%w: it wants less than nothing", executor.ErrUnfit)
	case t.Need.MilliCPU > m.has.MilliCPU || t.Need.MemMiB > m.has.MemMiB || t.Need.GPU > m.has.GPU:
		return fmt.Errorf("%w: %s wanted, node %s has %s in all", executor.ErrUnfit, show(t.Need), m.name, show(m.has.Resources))
	}
	return nil
}

// room says why a task has none on a node now: an executor.ErrBusy, or nil.
func (n *node) room(need, free executor.Resources) error {
	switch {
	case n.closed != "":
		return fmt.Errorf("%w: node %s %s", executor.ErrBusy, n.name, n.closed)
	case need.MilliCPU > free.MilliCPU || need.MemMiB > free.MemMiB || need.GPU > free.GPU:
		return fmt.Errorf("%w: %s wanted, node %s has %s left for the federation", executor.ErrBusy, show(need), n.name, show(free))
	}
	return nil
}

func show(r executor.Resources) string {
	s := fmt.Sprintf("%d milli-cores and %d MiB", max(r.MilliCPU, 0), max(r.MemMiB, 0))
	if r.GPU > 0 {
		s += fmt.Sprintf(" and %d GPUs", r.GPU)
	}
	return s
}

// amounts reads quantities; what is asked for is rounded up.
func (c Config) amounts(l corev1.ResourceList) amounts {
	gpu := l[corev1.ResourceName(c.GPUResource)]
	return amounts{Resources: executor.Resources{
		MilliCPU: l.Cpu().MilliValue(), MemMiB: l.Memory().Value() >> 20,
		GPU: gpu.Value(),
	}}
}

// requests of a pod, as the scheduler counts them: its containers together, or
// the largest of those that go before, and what the runtime takes.
func (c Config) requests(p *corev1.PodSpec) amounts {
	var sum, largest, lasting amounts
	for i := range p.Containers {
		sum = sum.plus(c.asked(&p.Containers[i]))
	}
	for i := range p.InitContainers {
		one := c.asked(&p.InitContainers[i])
		if r := p.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			lasting = lasting.plus(one)
			one = amounts{}
		}
		largest = larger(largest, lasting.plus(one))
	}
	sum = larger(sum.plus(lasting), largest)
	if p.Resources != nil { // of the pod as a whole
		sum = larger(sum, c.amounts(p.Resources.Requests))
	}
	sum = sum.plus(c.amounts(p.Overhead))
	sum.pods = 1
	return sum
}

// asked returns what a container requests; without a request its limit is one.
func (c Config) asked(k *corev1.Container) amounts {
	a := c.amounts(k.Resources.Requests)
	if mem := k.Resources.Requests.Memory(); mem.Value()%(1<<20) != 0 {
		a.MemMiB++
	}
	return a
}

func larger(a, b amounts) amounts {
	return amounts{Resources: executor.Resources{
		MilliCPU: max(a.MilliCPU, b.MilliCPU), MemMiB: max(a.MemMiB, b.MemMiB), GPU: max(a.GPU, b.GPU),
	}}
}
