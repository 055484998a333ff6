package machines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestLabelsOfMachines: what a handler knows of its machines stands beside its terms'
// labels, which win; what is too much, or is none, is left out.
func TestLabelsOfMachines(t *testing.T) {
	many := make([]string, command.MaxLabels)
	for i := range many {
		many[i] = fmt.Sprintf("k%02d=v", i)
	}
	for known, want := range map[string]command.Labels{
		"":                            "gpu=a100,handler=kube,site=a",
		"gpu=none,zone=z1":            "gpu=a100,handler=kube,site=a,zone=z1",
		"a.example/type=large,site=b": "a.example/type=large,gpu=a100,handler=kube,site=a",
		strings.Join(many, ","):       "gpu=a100,handler=kube,site=a",
		"no label":                    "gpu=a100,handler=kube,site=a",
	} {
		for _, m := range (Terms{Labels: "gpu=a100,handler=kube,site=a"}).onTerms("kube", []executor.Machine{{Labels: known}, {Labels: known}}, lending{}) {
			if m.labels != want {
				t.Errorf("%q: got %q, want %q", known, m.labels, want)
			}
		}
	}
}

// TestNetworkLabel: the label of the network stands whatever else is said, and is the broker's.
func TestNetworkLabel(t *testing.T) {
	many := make([]string, command.MaxLabels)
	for i := range many {
		many[i] = fmt.Sprintf("k%02d=v", i)
	}
	terms := Terms{Labels: "gpu=a100", Site: "a"}
	for want, m := range map[command.Labels]executor.Machine{
		"cloudshare/network=a,gpu=a100":                   {},
		"cloudshare/network=all.outbound,gpu=a100":        {Network: executor.NetworkOutbound, Labels: strings.Join(many, ",")},
		"cloudshare/network=all.host,gpu=a100,zone=z1":    {Network: executor.NetworkHost, Labels: "zone=z1"},
		"cloudshare/network=a,gpu=a100,zone=z2":           {Labels: "cloudshare/network=all.host,zone=z2"},
		"cloudshare/network=all.outbound,gpu=a100,zone=z": {Network: executor.NetworkOutbound, Labels: "zone=z"},
	} {
		if got := terms.onTerms("kube", []executor.Machine{m}, lending{})[0].labels; got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}

// TestFilesLabels: only a site where files travel promises room for them, only of handlers that collect what tasks
// leave, and what a handler says of itself does not count.
func TestFilesLabels(t *testing.T) {
	for _, c := range []struct {
		collects bool
		lends    lending
		want     command.Labels
	}{
		{false, lending{}, "cloudshare/network=a,gpu=a100"},
		{true, lending{}, "cloudshare/network=a,gpu=a100"},
		{false, lending{true, 16 << 30, 16 << 30}, "cloudshare/network=a,gpu=a100"},
		{true, lending{true, 16 << 30, 16 << 30}, "cloudshare/files-16g=all.sites,cloudshare/files-1g=all.sites," +
			"cloudshare/files-1t=a,cloudshare/files-256g=a,cloudshare/files-4g=all.sites,cloudshare/files-4t=a," +
			"cloudshare/files-64g=a,cloudshare/network=a,gpu=a100"},
		{true, lending{true, 16 << 30, 0}, "cloudshare/files-16g=a,cloudshare/files-1g=a," +
			"cloudshare/files-1t=a,cloudshare/files-256g=a,cloudshare/files-4g=a,cloudshare/files-4t=a," +
			"cloudshare/files-64g=a,cloudshare/network=a,gpu=a100"},
	} {
		terms := Terms{Labels: "gpu=a100", Site: "a", Collects: c.collects}
		m := executor.Machine{Labels: "cloudshare/files-4t=all.sites"}
		if got := terms.onTerms("kube", []executor.Machine{m}, c.lends)[0].labels; got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestTasksAreShared: the tasks of a handler with several machines.
func TestTasksAreShared(t *testing.T) {
	list := []executor.Machine{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}
	for tasks, want := range map[int64][3]int64{7: {3, 2, 2}, 3: {1, 1, 1}, 2: {1, 1, 0}} {
		for i, m := range (Terms{Tasks: tasks}).onTerms("h", list, lending{}) {
			if !m.limited || m.slots != want[i] || (&filter{js: &command.JobSpec{}}).at(m) != (want[i] > 0) {
				t.Errorf("%d tasks: %s gets %d, want %v", tasks, m.Name, m.slots, want)
			}
		}
	}
}
