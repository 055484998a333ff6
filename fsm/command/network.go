package command

import (
	"slices"
	"strings"
)

// NetworkLabel is the label by which a machine says whose tasks have a network there. Brokers set it;
// neither sites nor jobs name it themselves. Its values are NetworkOutbound and NetworkHost, or the
// site's own name: then the tasks of that site alone have one. A job that needs a network has the
// selector of NetworkSelector, so machines are matched with it as with any label.
const NetworkLabel = "cloudshare/network"

// Values of NetworkLabel that promise a network to the tasks of all sites. No site is called so: no
// site's name has a dot.
const (
	NetworkOutbound = "all.outbound" // out to the world, but neither to the machine nor to other tasks
	NetworkHost     = "all.host"     // the machine's
)

// NetworkSelector returns what a job that needs a network requires of machines: one for everybody's
// tasks, or for those of its own site.
func NetworkSelector(owner string) string {
	r := Selector{Key: NetworkLabel, Values: []string{NetworkOutbound, NetworkHost, owner}}
	slices.Sort(r.Values)
	return r.String()
}

// IsNetworkSelector reports whether a selector in canonical form is about NetworkLabel.
func IsNetworkSelector(text string) bool {
	return isAbout(strings.TrimPrefix(text, "!"), NetworkLabel)
}

// isAbout reports whether a selector in canonical form, without a first "!", is about a label.
func isAbout(text, label string) bool {
	rest, ok := strings.CutPrefix(text, label)
	return ok && (rest == "" || strings.ContainsRune(" !=", rune(rest[0])))
}
