package command

import (
	"fmt"

	"github.com/cloudshare/cloudshare/sched"
)

// Params are the federation's replicated parameters; Validate bounds each.
type Params struct {
	Policy  string     `json:"policy"`
	Running sched.Mode `json:"-"`
	// PreferOwn gives a task to a fitting free machine of its own site if there is one.
	PreferOwn bool `json:"prefer_own"`
	// FixedOrder takes free machines in (site, name) order instead of the keyed random choice; for
	// goldens.
	FixedOrder bool `json:"fixed_order"`
	// ClaimedHome makes FAIRSHARE include what sites report of their own users: what these use now
	// counts as contributed, what they ran at home as used. That is the paper's rule and the
	// simulator's; in a live federation nobody can check it.
	ClaimedHome bool `json:"-"`
	// ReserveAfterMs is how long a task that fits some machine's offer finds no room before a machine
	// is reserved for it, so that smaller tasks cannot starve it. 0 = off.
	ReserveAfterMs int64 `json:"reserve_after_ms"`
	// RetainMs and RetainJobs bound how long and how many ended jobs of each site are kept; see
	// limits.kept.
	RetainMs   int64 `json:"retain_ms"`
	RetainJobs int64 `json:"retain_jobs"`
	// DepartureMs is the time after which a lost site's waiting jobs end as lost. 0 = never.
	DepartureMs int64 `json:"departure_ms"`
	// RateCPU, RateMem and RateGPU give a charge: weight = MilliCPU·RateCPU + MemMiB·RateMem + GPU·RateGPU.
	RateCPU int64 `json:"rate_cpu"`
	RateMem int64 `json:"rate_mem"`
	RateGPU int64 `json:"rate_gpu"`
	// QuantumMs is the length of a time quantum of the utilities: 1 in a live federation, 1000 in the
	// simulator. Changing it after genesis is refused.
	QuantumMs int64 `json:"quantum_ms"`
	// LeaseMs is how long a site's foreign attempts may run without a message from the leader;
	// MarginMs is how much longer the leader waits before it declares the site lost. Every site must
	// use the same values, so changing them after genesis is refused. 0 in the simulator: no leases.
	LeaseMs  int64 `json:"lease_ms"`
	MarginMs int64 `json:"margin_ms"`
}

// DefaultParams returns the parameters of a new live federation.
func DefaultParams() Params {
	return Params{
		Policy: sched.Default, PreferOwn: true,
		ReserveAfterMs: 60_000, RetainMs: 24 * 3600_000, RetainJobs: 100_000,
		DepartureMs: 30 * 24 * 3600_000, RateCPU: 1, QuantumMs: 1,
		LeaseMs: 6000, MarginMs: 1000,
	}
}

// Validate checks that the policy is known and that every number is within its bounds; the error names
// the field and the bound.
func (p Params) Validate() error {
	if _, err := sched.New(p.Policy, p.Running); err != nil {
		return fmt.Errorf("%w: %w", ErrOutOfBounds, err)
	}
	if p.RateCPU == 0 && p.RateMem == 0 && p.RateGPU == 0 {
		return fmt.Errorf("%w: rate_cpu, rate_mem and rate_gpu are all 0: nothing would be charged", ErrOutOfBounds)
	}
	return firstError(
		within("reserve_after_ms", p.ReserveAfterMs, 0, MaxTimeoutMs),
		within("retain_ms", p.RetainMs, 0, MaxTimeoutMs),
		within("retain_jobs", p.RetainJobs, 0, MaxRetainJobs),
		within("departure_ms", p.DepartureMs, 0, MaxTimeoutMs),
		within("rate_cpu", p.RateCPU, 0, MaxRate),
		within("rate_mem", p.RateMem, 0, MaxRate),
		within("rate_gpu", p.RateGPU, 0, MaxRate),
		within("quantum_ms", p.QuantumMs, 1, MaxQuantumMs),
		within("lease_ms", p.LeaseMs, 0, MaxTimeoutMs),
		within("margin_ms", p.MarginMs, 0, MaxTimeoutMs),
	)
}
