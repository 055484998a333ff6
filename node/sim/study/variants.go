package study

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// Open lists the study with each of the choices that the paper leaves open made
// otherwise, on a part of its instances: the first so many periods of each log,
// one mapping, every other load. So what the study's own choice does there is
// among its rows.
func (s *Study) Open(periods int) []Variant {
	var out []Variant
	var loads []float64
	for i := 0; i < len(s.Loads); i += 2 {
		loads = append(loads, s.Loads[i])
	}
	add := func(name string, change func(*Study)) {
		v := *s
		v.Periods, v.Mappings, v.Loads, v.Beyond = min(periods, s.Periods), 1, loads, nil
		change(&v)
		if len(v.Scenarios) > 0 {
			out = append(out, Variant{Name: name, Study: &v})
		}
	}
	only := func(v *Study, scenario sim.Scenario) {
		v.Scenarios = nil
		for _, x := range s.Scenarios {
			if x == scenario {
				v.Scenarios = []sim.Scenario{x}
			}
		}
	}
	add("running tasks: "+sched.Completed.String(), func(v *Study) { v.Rules.Running = sched.Completed })
	add("home runs: "+sim.HomeUnreported.String(), func(v *Study) { v.Rules.Home = sim.HomeUnreported })
	add("home runs: "+sim.HomeNever.String(), func(v *Study) { v.Rules.Home = sim.HomeNever })
	add("machines in order", func(v *Study) { v.Rules.FixedOrder = true })
	add("last tie-break turned around", func(v *Study) { v.Rules.Reverse = true })
	for _, e := range []float64{0.5, 2} {
		add(fmt.Sprintf("Zipf exponent %v", e), func(v *Study) { v.Setup.Exponent = e; only(v, sim.Zipf) })
	}
	add("share: all cores, as in the paper", func(v *Study) { v.Rules.WholeShare = true; only(v, sim.Background) })
	for _, share := range []float64{0.25, 0.75} {
		add(fmt.Sprintf("background share %v", share), func(v *Study) { v.Setup.BackgroundShare = share; only(v, sim.Background) })
	}
	return out
}

// shares reports whether an instance of another study of the same logs is in this
// part, too.
func (s *Study) shares(r *Row) bool {
	return r.Period < s.Periods && r.Mapping < s.Mappings && slices.Contains(s.Loads, r.Load) &&
		slices.Contains(s.Scenarios, r.Scenario)
}
