package node

import (
	"fmt"
	"maps"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Terms are what a site says of one handler's machines, and how far it lets them
// be filled.
type Terms struct {
	// Labels that jobs may select by besides those that are implied: LabelHandler
	// and LabelSite.
	Labels map[string]string
	// Tasks at once, home runs included; 0 = as many as fit. Several machines get
	// equal shares of them, the first by name one more.
	Tasks int64
}

// Labels that every machine of a broker has, whatever its terms say, besides
// [command.NetworkLabel].
const (
	LabelHandler = "handler" // the handler's name
	LabelSite    = "site"    // the site's
)

// Validate names the first label or number that cannot be.
func (t Terms) Validate() error {
	for _, key := range [...]string{LabelHandler, LabelSite, command.NetworkLabel} {
		if _, ok := t.Labels[key]; ok {
			return fmt.Errorf("label %s is implied: leave it out", key)
		}
	}
	if t.Tasks < 0 || t.Tasks > command.MaxSlots {
		return fmt.Errorf("tasks %d: must be 0 to %d", t.Tasks, command.MaxSlots)
	}
	longest := strings.Repeat("x", command.MaxLabelValue) // of a name, which is not known here
	_, err := Terms{Labels: t.withNetwork(longest)}.LabelsAt(longest, longest)
	if err != nil {
		err = fmt.Errorf("labels: %w; %s, %s and %s count with them", err, LabelHandler, LabelSite, command.NetworkLabel)
	}
	return err
}

// withNetwork adds the label that the broker sets, so that there is room for it.
func (t Terms) withNetwork(value string) map[string]string {
	all := map[string]string{command.NetworkLabel: value}
	maps.Copy(all, t.Labels)
	return all
}

// LabelsAt returns the labels of a handler at a site: those of its terms and the implied ones.
func (t Terms) LabelsAt(handler, site string) (command.Labels, error) {
	all := map[string]string{LabelHandler: handler, LabelSite: site}
	maps.Copy(all, t.Labels)
	return command.LabelsOf(all)
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
	if _, err := command.LabelsOf(labels); err != nil {
		return nil, err
	}
	return labels, nil
}
