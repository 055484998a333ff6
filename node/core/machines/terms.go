package machines

import (
	"maps"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Terms are a handler's, as the core goes by them.
type Terms struct {
	Labels command.Labels
	Tasks  int64 // 0 = no bound
}

// machine is what a handler has, on its terms.
type machine struct {
	executor.Machine
	handler string
	labels  command.Labels
	// slots are how many tasks it may run at once, if limited.
	slots   int64
	limited bool
}

// onTerms adds to a handler's machines, sorted by name, what its terms say of them.
func (t Terms) onTerms(handler string, list []executor.Machine) []machine {
	out := make([]machine, len(list))
	n := int64(len(list))
	kinds := map[string]command.Labels{"": t.Labels}
	for i, m := range list {
		if _, met := kinds[m.Labels]; !met {
			kinds[m.Labels] = t.merge(command.Labels(m.Labels))
		}
		out[i] = machine{Machine: m, handler: handler, labels: kinds[m.Labels]}
		if t.Tasks > 0 {
			out[i].limited, out[i].slots = true, t.Tasks/n
			if int64(i) < t.Tasks%n {
				out[i].slots++
			}
		}
	}
	return out
}

// merge adds those that a handler knows of a machine to the terms' labels, which win;
// none if that is more than may be.
func (t Terms) merge(known command.Labels) command.Labels {
	all := maps.Collect(known.All())
	maps.Insert(all, t.Labels.All())
	labels, err := command.LabelsOf(all)
	if err != nil {
		return t.Labels
	}
	return labels
}

// runsOf returns which tasks a machine runs, as the order knows it: both packages
// number the kinds alike.
func runsOf(m executor.Machine) command.Runs { return command.Runs(m.Runs) }

// takes reports whether the machine runs tasks with, or without, an image.
func (m machine) takes(image bool) bool { return runsOf(m.Machine).Takes(image) }

// hasSlot reports whether the machine may run one task more beside so many.
func (m machine) hasSlot(tasks int64) bool { return !m.limited || tasks < m.slots }
