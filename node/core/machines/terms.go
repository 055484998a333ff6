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
	// Site, if any, has each machine say whose tasks have a network there: this site's,
	// or everybody's.
	Site string
	// Collects: it gives out what tasks leave. Files travel with tasks only there.
	Collects bool
}

// machine is what a handler has, on its terms.
type machine struct {
	executor.Machine
	handler string
	labels  command.Labels
	files   bool // files travel with tasks here
	// slots are how many tasks it may run at once, if limited.
	slots   int64
	limited bool
}

// lending is how far files travel with tasks here. The zero value is that they do not.
type lending struct {
	travel bool
	most   int64 // bytes of the files of a task of another site
	room   int64 // those for which there is room now. Invariant: room ≤ most.
}

// onTerms adds to a handler's machines, sorted by name, what its terms say of them.
func (t Terms) onTerms(handler string, list []executor.Machine, files lending) []machine {
	out := make([]machine, len(list))
	n := int64(len(list))
	kinds := map[kind]command.Labels{}
	for i, m := range list {
		k := kind{m.Labels, m.Network}
		if _, met := kinds[k]; !met {
			kinds[k] = t.merge(k, files)
		}
		out[i] = machine{Machine: m, handler: handler, labels: kinds[k], files: files.travel && t.Collects}
		if t.Tasks > 0 {
			out[i].limited, out[i].slots = true, t.Tasks/n
			if int64(i) < t.Tasks%n {
				out[i].slots++
			}
		}
	}
	return out
}

// kind is what a handler itself says of machines.
type kind struct {
	labels  string
	network executor.Network
}

// merge adds what a handler knows of machines to the terms' labels, which win over its
// labels; of these none if that is more than may be.
func (t Terms) merge(k kind, files lending) command.Labels {
	own := maps.Collect(t.Labels.All())
	if t.Site != "" {
		own[command.NetworkLabel] = t.networkOf(k.network)
	}
	if t.Site != "" && t.Collects && files.travel {
		maps.Copy(own, command.FilesLabels(t.Site, files.room, command.MaxOutputBytes))
	}
	all := maps.Collect(command.Labels(k.labels).All())
	maps.DeleteFunc(all, func(key, _ string) bool { return command.FilesWish(key) != "" }) // the broker's to promise
	maps.Copy(all, own)
	for _, set := range []map[string]string{all, own} {
		if labels, err := command.LabelsOf(set); err == nil {
			return labels
		}
	}
	return t.Labels
}

// networkOf returns whose tasks have a network where others' have this one.
func (t Terms) networkOf(n executor.Network) string {
	switch n {
	case executor.NetworkOutbound:
		return command.NetworkOutbound
	case executor.NetworkHost:
		return command.NetworkHost
	case executor.NetworkNone:
	}
	return t.Site
}

// runsOf returns which tasks a machine runs, as the order knows it: both packages
// number the kinds alike.
func runsOf(m executor.Machine) command.Runs { return command.Runs(m.Runs) }

// takes reports whether the machine runs tasks with, or without, an image.
func (m machine) takes(image bool) bool { return runsOf(m.Machine).Takes(image) }

// hasSlot reports whether the machine may run one task more beside so many.
func (m machine) hasSlot(tasks int64) bool { return !m.limited || tasks < m.slots }
