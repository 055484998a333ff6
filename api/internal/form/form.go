// Package form gives what the broker shows its form on the wire, for all who answer.
package form

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Moment returns nil for a time that has not come.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func memory(mib int64) string {
	if mib == 0 {
		return "0"
	}
	return strconv.FormatInt(mib, 10) + "Mi"
}

// Resources returns the form of resources.
func Resources(r command.Resources) wire.Resources {
	return wire.Resources{CPU: float64(r.MilliCPU) / 1000, Memory: memory(r.MemMiB), GPU: r.GPU}
}

// full replaces nil, so that lists and maps never are null on the wire.
func full[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func fullMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Spec returns the form of a job's spec.
func Spec(s jobspec.Spec) wire.Spec {
	timeout := ""
	if s.Timeout > 0 {
		timeout = s.Timeout.String()
	}
	return wire.Spec{
		Name: s.Name, Command: full(s.Command), Image: optional(s.Image), Env: fullMap(s.Env), Count: s.Count,
		Indices:   s.Indices.String(),
		Timeout:   optional(timeout),
		Resources: wire.SpecResources{CPU: s.Resources.CPU, Memory: memory(s.Resources.Memory), GPU: s.Resources.GPU},
		Retry:     retryOf(&s.Retry),
		Parallel:  s.Parallel,
		Priority:  s.Priority, Labels: fullMap(s.Labels),
		Sites: wire.SpecSites{Only: full(s.Sites.Only), Not: full(s.Sites.Not)}, Selectors: full(s.Selectors),
		Network: s.Network, Inputs: inputsOf(s.Inputs), Outputs: outputsOf(&s.Outputs), After: afterOf(s.After),
	}
}

func retryOf(r *jobspec.SpecRetry) wire.SpecRetry {
	out := wire.SpecRetry{
		MaxAttempts: r.MaxAttempts, OnLoss: r.LossName(), OnlyOn: r.OnlyOn.Texts(), NotOn: r.NotOn.Texts(),
	}
	if r.Backoff > 0 {
		out.Backoff, out.BackoffMax = r.Backoff.String(), r.BackoffMax.String()
	}
	return out
}

// Job returns the form of a job.
func Job(j node.Job) wire.Job {
	counts := j.Counts
	if counts == nil {
		counts = map[string]uint32{}
	}
	return wire.Job{
		ID: j.ID.String(), Name: j.Spec.Name, Site: j.ID.Site, State: j.State, Progress: j.Progress(), Reason: j.Reason,
		Durability: j.Durability, SubmittedAt: Moment(j.SubmittedAt), StartedAt: Moment(j.StartedAt),
		EndedAt: Moment(j.EndedAt), Counts: counts, Outline: j.Outline, Sealed: j.Sealed, User: j.User,
		CancelledBy: j.CancelledBy,
		Spec:        Spec(j.Spec), Notices: noticesOf(j.Notices),
	}
}

// Task returns the form of a task.
func Task(t node.Task) wire.Task {
	var run *int64
	if ms := t.Run.Milliseconds(); t.Run >= 0 && !t.EndedAt.IsZero() && !t.StartedAt.IsZero() {
		run = &ms
	}
	out := wire.Task{
		Index: t.Index, State: t.State, Reason: t.Reason, Site: t.Site, Machine: t.Machine,
		Attempt: t.Attempt, Token: t.Token, StartedAt: Moment(t.StartedAt), EndedAt: Moment(t.EndedAt), RunMs: run,
		ExitCode: t.ExitCode, Signal: t.Signal, Usage: AttemptUsage(&t.Measured),
	}
	if t.FilesAway.Why != "" {
		out.FilesAway = &wire.FilesAway{Why: t.FilesAway.Why, Coming: t.FilesAway.Coming}
	}
	return out
}

// siteStates are the contract's words.
var siteStates = map[fsm.SiteState]string{
	fsm.Alive: "alive", fsm.Suspected: "suspect", fsm.SiteGone: "lost", fsm.Left: "left",
}

// Site returns the form of a site.
func Site(s node.Site) wire.Site {
	machines, runs := make([]wire.Machine, 0, len(s.Machines)), make([]command.Runs, 0, len(s.Machines))
	for _, m := range s.Machines {
		machines = append(machines, wire.Machine{
			Name: m.Name, Exposed: Resources(m.Exposed), Free: Resources(m.Free), Runs: kindsOf(m.Runs),
			MaxTasks: m.Slots, Labels: maps.Collect(m.Labels.All()), Reserved: m.Reserved,
		})
		runs = append(runs, m.Runs)
	}
	return wire.Site{
		ID: s.ID, State: siteStates[s.State], Closed: s.Closed.String(), Voter: s.Voter, Incarnation: s.Incarnation,
		Addresses: wire.Addresses{HTTP: s.HTTP, Peer: s.Peer},
		Capacity:  Resources(s.Capacity), Exposed: Resources(s.Exposed),
		Assigned: Resources(s.Assigned), Home: Resources(s.Home), Runs: kindsOf(runs...), Machines: machines,
	}
}

// kindsOf names the tasks that one or another of these machines runs.
func kindsOf(machines ...command.Runs) []string {
	kinds := []string{}
	for image, name := range [...]string{"commands", "images"} {
		if slices.ContainsFunc(machines, func(r command.Runs) bool { return r.Takes(image == 1) }) {
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// Queue returns the form of what waits of an owner.
func Queue(q fsm.QueueView) wire.Queue {
	return wire.Queue{
		Site: q.Site, Waiting: q.Waiting, CPU: float64(q.MilliCPU) / 1000, OldestMs: q.OldestMs, Priority: q.Priority,
	}
}

// Quotas returns the form of a site's quotas.
func Quotas(v fsm.QuotaView) wire.SiteQuotas {
	out := wire.SiteQuotas{Site: v.Site, Quotas: make([]wire.Quota, 0, len(v.Uses))}
	for _, u := range v.Uses {
		full := "refuse"
		if u.Drops() {
			full = "drop_oldest"
		}
		out.Quotas = append(out.Quotas, wire.Quota{
			Quota: u.Quota, Used: u.Used, Limit: u.Limit, Full: full,
			Meaning: node.QuotaMeaning(u.Quota),
		})
	}
	return out
}

// Ledger returns the form of the ledger.
func Ledger(l fsm.LedgerView) wire.Ledger {
	out := wire.Ledger{
		Index: l.Index, Time: l.TimeMs, Unit: l.Unit,
		Sites: make([]wire.Account, 0, len(l.Sites)), Matrix: make([]wire.Cell, 0, len(l.Matrix)),
	}
	for _, a := range l.Sites {
		out.Sites = append(out.Sites, wire.Account(a))
	}
	for _, c := range l.Matrix {
		out.Matrix = append(out.Matrix, wire.Cell(c))
	}
	return out
}

// Status returns the form of a broker's status.
func Status(s node.Status, drain wire.Drain, hash bool) wire.Status {
	out := wire.Status{
		Site: s.Site, Leader: s.Lead, Term: s.Term, Index: s.Index, Version: s.Version, Federation: s.Federation,
		Incarnation: s.Incarnation, Voters: full(s.Voters), Members: full(s.Members), Handlers: []wire.Handler{},
		Drain: drain, Estimates: wire.Calibration{
			Starts: s.Estimates.Starts, Held: heldOf(s.Estimates),
			Open: s.Estimates.Open,
		},
	}
	for _, h := range s.Handlers {
		out.Handlers = append(out.Handlers, wire.Handler(h))
	}
	out.Compared = comparedOf(s.Compared)
	out.ShutOut = s.ShutOut
	out.LeaderWhy, out.Majorities = node.LeaderWords(s.Lead, s.Placement), majoritiesOf(s)
	out.Outputs = wire.Outputs{
		Kept: s.Outputs.Outputs, Bytes: s.Outputs.Bytes, MaxBytes: s.Outputs.MaxBytes,
		KeepMs:       s.Outputs.Keep.Milliseconds(),
		RemovedByAge: s.Outputs.RemovedByAge, RemovedByBytes: s.Outputs.RemovedByBytes,
		Brought: s.Outputs.Brought, Waiting: s.Outputs.Waiting, Trouble: s.Outputs.Trouble,
	}
	if oldest := s.Outputs.Oldest.UTC(); !oldest.IsZero() {
		out.Outputs.Oldest = &oldest
	}
	if hash {
		out.StateHash = &wire.StateHash{Index: s.HashIndex, Hash: s.Hash}
	}
	return out
}

func majoritiesOf(s node.Status) []wire.Majority {
	p := s.Placement
	var out []wire.Majority
	for _, site := range slices.Sorted(maps.Keys(p.Majorities)) {
		out = append(out, wire.Majority{
			Site: site, RoundTripUs: p.Majorities[site].Microseconds(), Turns: slices.Contains(p.Turns, site),
		})
	}
	return out
}

func comparedOf(c node.Comparison) wire.Compared {
	return wire.Compared{
		Index: c.Entry, With: full(c.With), Differs: sitesOf(c.Differs), Liars: sitesOf(c.Liars), Unsure: c.Unsure,
	}
}

func sitesOf(list []node.Difference) []string {
	out := []string{}
	for _, d := range list {
		out = append(out, d.Site)
	}
	return out
}

// runningModes are the words for command.Params.Running, by its number.
var runningModes = [...]string{"partial", "completed"}

// setNumber writes n into a number of a type that this package may not name.
func setNumber[T ~uint8](to *T, n int) { *to = T(n) }

// Policy returns the form of the federation's policy, of so many sites.
func Policy(p command.Params, sites int) wire.Policy {
	out := wire.Policy{
		Policy: p.Policy, Running: runningModes[min(int(p.Running), len(runningModes)-1)], PreferOwn: p.PreferOwn,
		FixedOrder:     p.FixedOrder,
		ReserveAfterMs: p.ReserveAfterMs, RetainMs: p.RetainMs, RetainJobs: p.RetainJobs, DepartureMs: p.DepartureMs,
		RateCPU: p.RateCPU, RateMem: p.RateMem, RateGPU: p.RateGPU, QuantumMs: p.QuantumMs,
		LeaseMs: p.LeaseMs, MarginMs: p.MarginMs,
	}
	if effective := fsm.EffectivePolicy(p.Policy, sites); effective != p.Policy {
		out.Effective = effective
	}
	return out
}

// Params reads a policy as a client sends it.
func Params(p wire.Policy) (command.Params, error) {
	out := command.Params{
		Policy: p.Policy, PreferOwn: p.PreferOwn, FixedOrder: p.FixedOrder, ReserveAfterMs: p.ReserveAfterMs,
		RetainMs: p.RetainMs, RetainJobs: p.RetainJobs, DepartureMs: p.DepartureMs,
		RateCPU: p.RateCPU, RateMem: p.RateMem, RateGPU: p.RateGPU, QuantumMs: p.QuantumMs,
		LeaseMs: p.LeaseMs, MarginMs: p.MarginMs,
	}
	for mode, name := range runningModes {
		if name == p.Running {
			setNumber(&out.Running, mode)
			return out, nil
		}
	}
	return out, &node.ParamError{Field: "running", Value: fmt.Sprintf("%.40q", p.Running), Why: "must be partial or completed"}
}
