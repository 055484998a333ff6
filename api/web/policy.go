package web

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// policyChanges says which parameters a proposed policy would change, and from what to what, by their names in the
// API; nil is no proposal.
func policyChanges(now command.Params, then *command.Params) (changes []string) {
	if then == nil {
		return nil
	}
	after := parameters(*then)
	for i, before := range parameters(now) {
		if before != after[i] {
			changes = append(changes, fmt.Sprintf("%s: %v → %v", before.name, before.value, after[i].value))
		}
	}
	if len(changes) == 0 {
		changes = []string{"nothing: it is the policy of now"}
	}
	return changes
}

type policyField struct {
	name  string
	value any
}

// parameters are all that a policy is made of, but for what the simulator alone sets.
func parameters(p command.Params) []policyField {
	return []policyField{
		{"policy", p.Policy},
		{"running", p.Running},
		{"prefer_own", p.PreferOwn},
		{"fixed_order", p.FixedOrder},
		{"reserve_after_ms", p.ReserveAfterMs},
		{"retain_ms", p.RetainMs},
		{"retain_jobs", p.RetainJobs},
		{"departure_ms", p.DepartureMs},
		{"rate_cpu", p.RateCPU},
		{"rate_mem", p.RateMem},
		{"rate_gpu", p.RateGPU},
		{"quantum_ms", p.QuantumMs},
		{"lease_ms", p.LeaseMs},
		{"margin_ms", p.MarginMs},
	}
}
