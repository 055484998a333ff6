package node

import (
	"fmt"
	"maps"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// Terms are what a site says of one handler's machines, and how far it lets them
// be filled.
type Terms struct {
	// Labels that jobs may select by, beside those that are implied: LabelHandler
	// and LabelSite.
	Labels map[string]string
	// Tasks at once, home runs included; 0 = as many as fit. Several machines get
	// equal shares of them, the first by name one more.
	Tasks int64
}

// Labels that every machine of a broker has, whatever its terms say.
const (
	LabelHandler = "handler" // the handler's name
	LabelSite    = "site"    // the site's
)

// Validate names the first label or number that cannot be.
func (t Terms) Validate() error {
	for _, key := range [...]string{LabelHandler, LabelSite} {
		if _, ok := t.Labels[key]; ok {
			return fmt.Errorf("label %s is implied: leave it out", key)
		}
	}
	if t.Tasks < 0 || t.Tasks > fsm.MaxSlots {
		return fmt.Errorf("tasks %d: must be 0 to %d", t.Tasks, fsm.MaxSlots)
	}
	_, err := t.labels("", "")
	if err != nil {
		err = fmt.Errorf("labels: %w", err)
	}
	return err
}

// labels are those of the terms and the implied ones.
func (t Terms) labels(handler, site string) (fsm.Labels, error) {
	all := map[string]string{LabelHandler: handler, LabelSite: site}
	maps.Copy(all, t.Labels)
	return fsm.LabelsOf(all)
}

// ParseLabels reads KEY=VALUE pairs. The error names the first that is none.
func ParseLabels(pairs []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if _, twice := labels[key]; !ok || twice {
			return nil, fmt.Errorf("%q: must be KEY=VALUE, each key once", pair)
		}
		labels[key] = value
	}
	if _, err := fsm.LabelsOf(labels); err != nil {
		return nil, err
	}
	return labels, nil
}

// terms are a handler's, as the core goes by them.
type terms struct {
	labels fsm.Labels
	tasks  int64 // 0 = no bound
}

// machine is what a handler has, on its terms.
type machine struct {
	executor.Machine
	handler string
	labels  fsm.Labels
	// slots are how many tasks it may run at once, if limited.
	slots   int64
	limited bool
}

// onTerms adds to a handler's machines, sorted by name, what its terms say of them.
func (t terms) onTerms(handler string, list []executor.Machine) []machine {
	out := make([]machine, len(list))
	n := int64(len(list))
	kinds := map[string]fsm.Labels{"": t.labels}
	for i, m := range list {
		if _, met := kinds[m.Labels]; !met {
			kinds[m.Labels] = t.beside(fsm.Labels(m.Labels))
		}
		out[i] = machine{Machine: m, handler: handler, labels: kinds[m.Labels]}
		if t.tasks > 0 {
			out[i].limited, out[i].slots = true, t.tasks/n
			if int64(i) < t.tasks%n {
				out[i].slots++
			}
		}
	}
	return out
}

// beside adds those that a handler knows of a machine to the terms' labels, which win;
// none if that is more than may be.
func (t terms) beside(known fsm.Labels) fsm.Labels {
	all := maps.Collect(known.All())
	maps.Insert(all, t.labels.All())
	labels, err := fsm.LabelsOf(all)
	if err != nil {
		return t.labels
	}
	return labels
}

// runsOf is which tasks a machine runs, as the order knows it: both packages
// number the kinds alike.
func runsOf(m executor.Machine) fsm.Runs { return fsm.Runs(m.Runs) }

// takes reports whether the machine runs tasks with, or without, an image.
func (m machine) takes(image bool) bool { return runsOf(m.Machine).Takes(image) }

// suitor asks one machine after the other whether it is one for a job's tasks. The
// machines of a handler have equal labels, and to compare those with the selectors
// means to read both: that is done once for all that stand together.
type suitor struct {
	js     *fsm.JobSpec
	but    []refusal  // of handlers that are not asked
	labels fsm.Labels // of the last machine that was asked
	asked  bool
	admits bool // if asked: what the job says of labels
}

// at reports whether the machine is one for the job's tasks, whatever room it has.
func (q *suitor) at(m machine) bool {
	if !m.takes(q.js.Image) || m.limited && m.slots == 0 {
		return false
	}
	for i := range q.but {
		if q.but[i].handler == m.handler {
			return false
		}
	}
	if !q.asked || q.labels != m.labels {
		q.labels, q.asked, q.admits = m.labels, true, q.js.Admits(m.labels)
	}
	return q.admits
}

// hasSlot reports whether the machine may run one task more beside so many.
func (m machine) hasSlot(tasks int64) bool { return !m.limited || tasks < m.slots }
