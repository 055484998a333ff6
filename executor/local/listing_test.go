package local

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// TestListsByNetwork: a sandbox with the machine's network sees its resolver's folders, whatever sandbox was listed for
// a moment before, and one without does not see them.
func TestListsByNetwork(t *testing.T) {
	for _, network := range []bool{false, true} {
		l := new(listing)
		l.plan(sandbox.Plan{HostNetwork: network})
		for i := range l.lists {
			if len(l.lists[i].parts) > 0 {
				l.lists[i].parts = append(l.lists[i].parts, "d/of/the/other")
			}
		}
		if got := l.plan(sandbox.Plan{HostNetwork: !network}).Shown; slices.Contains(got, "d/of/the/other") {
			t.Errorf("network %t has the list of the other", !network)
		}
	}
}
