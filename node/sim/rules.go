package sim

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/sched"
)

// Rules are what the paper leaves open about a run.
type Rules struct {
	Running    sched.Mode // how running tasks count
	Home       Home       // how home runs count
	FixedOrder bool       // machines in order, not by the keyed choice
	Reverse    bool       // sites numbered backwards, which turns the last tie-break around
	WholeShare bool       // FAIRSHARE's share is a site's number of cores; see Case
}

// String names what differs from the defaults.
func (r Rules) String() string {
	return fmt.Sprintf("running %s, home runs %s, fixed order %t, reversed %t, whole share %t", r.Running, r.Home, r.FixedOrder, r.Reverse, r.WholeShare)
}

// Obey puts the rules in force.
func (in *Instance) Obey(r Rules) {
	in.Params = Params(sched.Default)
	in.Params.Running, in.Params.FixedOrder, in.Home, in.WholeShare = r.Running, r.FixedOrder, r.Home, r.WholeShare
	if r.Reverse {
		slices.Reverse(in.Cores)
		for i := range in.Tasks {
			in.Tasks[i].Site = len(in.Cores) - 1 - in.Tasks[i].Site
		}
	}
}
