package node

import (
	"fmt"
	"maps"
	"slices"
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
// [command.NetworkLabel] and those of [command.FilesLabels].
const (
	LabelHandler = "handler" // the handler's name
	LabelSite    = "site"    // the site's
)

// Validate names the first label or number that cannot be.
func (t Terms) Validate() error {
	longest := strings.Repeat("x", command.MaxLabelValue) // of a name, which is not known here
	implied := impliedLabels(longest)
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if _, ok := implied[key]; ok || key == LabelHandler || key == LabelSite {
			return fmt.Errorf("label %s is implied: leave it out", key)
		}
	}
	if t.Tasks < 0 || t.Tasks > command.MaxSlots {
		return fmt.Errorf("tasks %d: must be 0 to %d", t.Tasks, command.MaxSlots)
	}
	maps.Copy(implied, t.Labels)
	_, err := Terms{Labels: implied}.LabelsAt(longest, longest)
	if err != nil {
		err = fmt.Errorf("labels: %w; %s, %s and %d of the broker's own count with them",
			err, LabelHandler, LabelSite, len(impliedLabels("")))
	}
	return err
}

// impliedLabels are those that brokers set besides LabelHandler and LabelSite, so that there is room for them.
func impliedLabels(site string) map[string]string {
	all := command.FilesLabels(site, 0, command.MaxOutputBytes)
	all[command.NetworkLabel] = site
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
