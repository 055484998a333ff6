package command

import (
	"math"

	"github.com/cloudshare/cloudshare/sched"
)

func (r *reader) params(p *Params) {
	p.Policy = r.string("policy", 64)
	p.Running = sched.Mode(r.uint("running", math.MaxUint8))
	p.PreferOwn, p.ClaimedHome, p.FixedOrder = r.bool("prefer_own"), r.bool("claimed_home"), r.bool("fixed_order")
	p.ReserveAfterMs = r.int("reserve_after_ms")
	p.RetainMs, p.RetainJobs = r.int("retain_ms"), r.int("retain_jobs")
	p.DepartureMs = r.int("departure_ms")
	p.RateCPU, p.RateMem, p.RateGPU = r.int("rate_cpu"), r.int("rate_mem"), r.int("rate_gpu")
	p.QuantumMs = r.int("quantum_ms")
	p.LeaseMs, p.MarginMs = r.int("lease_ms"), r.int("margin_ms")
}

func (r *reader) register() *Register {
	b := new(Register)
	r.uuid(&b.Node)
	r.uuid(&b.Boot)
	b.Known = list(r, "known", MaxKnown, len(b.Boot), (*reader).uuid)
	b.HTTP, b.Peer = r.string("http", MaxAddress), r.string("peer", MaxAddress)
	b.Gossip = r.string("gossip", MaxAddress)
	b.MaxVersion, b.After = r.uint32("max_version"), r.number()
	b.Held = list(r, "held", MaxHeld, minAttempt, (*reader).attempt)
	b.Lost = list(r, "lost", MaxHeld, minAttempt, (*reader).attempt)
	return b
}

// jobs reads a Submit's jobs. What a job shares with the one before it is not written, so that there is only one way to
// write them.
func (r *reader) jobs() []JobSpec {
	before := &JobSpec{}
	first := true
	return list(r, "jobs", MaxJobsPerSubmit, minJob, func(r *reader, j *JobSpec) {
		j.Num, j.Count, j.CreatedMs = r.number(), r.uint32("count"), r.int("created_ms")
		with := shared(r.uint("shared", uint64(sharesAll)))
		if with&sharesTerms == 0 {
			r.terms(j)
		} else {
			j.takeTerms(before)
		}
		if with&sharesPayload == 0 {
			j.Payload = r.bytes("payload", MaxPayload)
		} else {
			j.Payload = before.Payload
		}
		if r.err == nil && with != j.sharedWith(before, first) {
			r.fail(nil, "job %d does not share %d with the job before it", j.Num, with)
		}
		before, first = j, false
	})
}

func (r *reader) terms(j *JobSpec) {
	j.Need = r.resources()
	marks := r.uint("marks", jobImage|jobDelivers|jobGated)
	j.Image, j.Delivers, j.Gated = marks&jobImage != 0, marks&jobDelivers != 0, marks&jobGated != 0
	j.TimeoutMs = r.int("timeout_ms")
	j.MaxAttempts = r.uint32("max_attempts")
	j.OnLoss = OnLoss(r.uint("on_loss", math.MaxUint8))
	j.Priority, j.Nice = SplitOrder(int32(r.signed("order", math.MinInt32, math.MaxInt32)))
	j.Only = list(r, "only", MaxSiteNames, 1, (*reader).siteInto)
	j.Not = list(r, "not", MaxSiteNames, 1, (*reader).siteInto)
	j.Selectors = list(r, "selectors", MaxSelectors, 1, func(r *reader, s *string) {
		*s = r.string("selector", MaxSelectorText)
	})
}

func (r *reader) offer() *Offer {
	b := &Offer{Version: r.number(), Machines: r.machines()}
	b.Capacity, b.Home = r.resources(), r.resources()
	return b
}

// machines reads the label sets that machines share, then the machines. The sets come in the order of
// their first use, so that there is only one way to write them.
func (r *reader) machines() []Machine {
	sets := list(r, "sets of labels", MaxLabelSets, 1, func(r *reader, l *Labels) {
		*l = Labels(r.string("labels", MaxLabelText))
	})
	used := 0
	twice := map[Labels]bool{"": true}
	for _, l := range sets {
		if twice[l] {
			r.fail(nil, "labels %.140q are none, or stand twice", l)
		}
		twice[l] = true
	}
	machines := list(r, "machines", MaxMachines, minMachine, func(r *reader, m *Machine) {
		r.machine(m)
		m.Slots = r.int("slots")
		n := int(r.uint("labels", uint64(min(len(sets), used+1))))
		if used = max(used, n); n > 0 {
			m.Labels = sets[n-1]
		}
	})
	if r.err == nil && used != len(sets) {
		r.fail(nil, "%d sets of labels, %d are used", len(sets), used)
	}
	return machines
}

func (r *reader) machine(m *Machine) {
	m.Name, m.Resources, m.Whole = r.string("machine's name", MaxMachineName), r.resources(), r.resources()
	m.Runs = Runs(r.uint("runs", math.MaxUint8))
}

func (r *reader) started(a *StartedAttempt) {
	r.attempt(&a.AttemptRef)
	a.DelayMs = r.int("delay_ms")
}

func (r *reader) bound(a *BoundAttempt) {
	r.attempt(&a.AttemptRef)
	a.BoundMs = r.int("bound_ms")
}

func (r *reader) ended(a *Ended) {
	r.attempt(&a.AttemptRef)
	a.Outcome = Outcome(r.uint("outcome", math.MaxUint8))
	a.ExitCode = int32(r.signed("exit_code", math.MinInt32, math.MaxInt32))
	a.Signal = int32(r.signed("signal", math.MinInt32, math.MaxInt32))
	flags := r.uint("flags", endedRan|endedOutput|endedMeasured)
	a.Ran, a.DelayMs, a.RunMs = flags&endedRan != 0, r.int("delay_ms"), r.int("run_ms")
	a.Detail = r.string("detail", MaxDetail)
	r.endedFacts(a, flags)
}

func (r *reader) decline() *Decline {
	b := new(Decline)
	b.Attempts = list(r, "attempts", MaxReports, minAttempt, (*reader).attempt)
	b.Reason = r.string("reason", MaxDetail)
	flags := r.uint("offer", declineOffers|declineUnopened)
	b.Unopened = flags&declineUnopened != 0
	if flags&declineOffers != 0 {
		b.Offer = r.offer()
	}
	return b
}

func (r *reader) row(u *UsageRow) {
	u.Job, u.Task, u.Need = r.number(), r.uint32("task"), r.resources()
	u.AgoMs, u.RunMs, u.WaitMs = r.int("ago_ms"), r.int("run_ms"), r.int("wait_ms")
}

func (r *reader) attempt(a *AttemptRef) {
	a.Job, a.Task = r.jobID(), r.uint32("task")
	a.Attempt, a.Token = r.uint32("attempt"), r.number()
}

func (r *reader) jobID() JobID { return JobID{Site: r.site(), Num: r.number()} }

func (r *reader) resources() Resources {
	return Resources{MilliCPU: r.int("milli_cpu"), MemMiB: r.int("mem_mib"), GPU: r.int("gpu")}
}
