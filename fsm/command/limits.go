package command

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/sched"
)

// ErrOutOfBounds is wrapped by every Validate error, which names the field,
// its value and the bound.
var ErrOutOfBounds = errors.New("out of bounds")

// Bounds of what a command may hold. They guard memory and the arithmetic of
// the ledger. Decoding refuses what exceeds them and a refused entry stops the
// node, so a bound may be raised by a new version and is never lowered.
const (
	// MaxCount tasks in one job.
	MaxCount = 1_000_000
	// MaxPayload bytes in a job's payload: a request body of 1 MiB, and 64 KiB
	// for what its stored form adds.
	MaxPayload = 1<<20 + 64<<10
	// MaxJobsPerSubmit jobs in one Submit; see also MaxCommand and SizeBound.
	MaxJobsPerSubmit = 4096
	// MaxSiteNames in a job's Only or Not.
	MaxSiteNames = 1000
	// MaxMachines in one offer.
	MaxMachines = 10_000
	// MaxMachineName bytes in a machine's name.
	MaxMachineName = 128
	// MaxAddress bytes in a host:port.
	MaxAddress = 300
	// MaxDetail bytes in an outcome's detail or a decline's reason; see Clip.
	MaxDetail = 256
	// MaxReports attempts in one Started, Bound, Complete or Decline.
	MaxReports = 10_000
	// MaxKnown boots in a Register.
	MaxKnown = 64
	// MaxHeld attempts in each list of a Register.
	MaxHeld = 80_000
	// MaxUsageRows in one Usage.
	MaxUsageRows = 1000
	// MaxAttempts bounds a job's max_attempts.
	MaxAttempts = 1000
	// MaxPriority bounds |priority|.
	MaxPriority = 1_000_000
	// MaxTimeoutMs bounds every duration: 10 years of 366 days.
	MaxTimeoutMs = sched.MaxNow
	// MaxUnixMs bounds dates for people: the end of year 9999.
	MaxUnixMs = 253_402_300_799_999
	// MaxRetainJobs ended jobs kept of one site.
	MaxRetainJobs = 500_000
	// MaxQuantumMs is the longest quantum: one hour.
	MaxQuantumMs = 3_600_000

	// MaxCommand bytes in one encoded command, MaxBatch in one encoded batch.
	MaxCommand = 16 << 20
	MaxBatch   = 32 << 20
	// MaxCommands in one batch.
	MaxCommands = 65_536
)

// FirstVersion is the apply version that every federation begins with, whatever its
// founder knows: a genesis means the same to all.
const FirstVersion = 1

// Bounds of resources: of one task, of one machine, and of all machines in one
// site's offer together. With rates up to MaxRate a task, and all that a site
// exposes at one moment, weighs at most
//
//	1000·(1e9 + 1e9 + 1e6) = MaxTaskWeight ≈ 2.0e12
//
// a quantum, which is 1/50 of sched.MaxWeight: at the greatest rates the
// ledger is proven exact for 50 sites of the greatest size, at the default
// rates (one a milli-core) for 100,000 of them, that is 1e11 cores.
const (
	MaxMilliCPU   = 1_000_000_000 // a million cores
	MaxMemMiB     = 1_000_000_000 // about a PiB
	MaxGPU        = 1_000_000
	MaxRate       = 1000
	MaxTaskWeight = MaxRate * (MaxMilliCPU + MaxMemMiB + MaxGPU)
)

// The proof's first step, checked by the compiler.
const _ = uint(sched.MaxWeight - 49*MaxTaskWeight)

// Clip makes s fit for a detail or reason: one line of valid UTF-8 of at most
// MaxDetail bytes.
func Clip(s string) string {
	if len(s) > MaxDetail {
		s = s[:MaxDetail]
		for range utf8.UTFMax - 1 { // no half rune at the cut
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Validate checks everything that a command may hold. A command that passes
// is encoded in at most MaxCommand bytes, and Decode accepts it.
func (c *Command) Validate() error {
	if err := inSite("command's site", c.ID.Site); err != nil {
		return err
	}
	if v, ok := c.Body.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return fmt.Errorf("%w: a command has no body that can be encoded: %T", ErrOutOfBounds, c.Body)
}

// Validate checks the bounds.
func (b *Genesis) Validate() error {
	return firstError(within("created_ms", b.CreatedMs, 0, MaxUnixMs), b.Params.Validate())
}

// Validate checks the bounds.
func (b *Register) Validate() error {
	return firstError(inAddresses(b.HTTP, b.Peer, b.Gossip), within("known", int64(len(b.Known)), 0, MaxKnown),
		inAttempts("held", b.Held, MaxHeld), inAttempts("lost", b.Lost, MaxHeld))
}

// Validate checks every job, and that together they fit into a command.
func (b *Submit) Validate() error {
	if err := within("jobs", int64(len(b.Jobs)), 0, MaxJobsPerSubmit); err != nil {
		return err
	}
	size := 0
	for i := range b.Jobs {
		if err := b.Jobs[i].Validate(); err != nil {
			return fmt.Errorf("job %d: %w", b.Jobs[i].Num, err)
		}
		size += b.Jobs[i].SizeBound()
	}
	return within("bytes of all jobs", int64(size), 0, MaxSubmit)
}

// MaxSubmit bounds the SizeBounds of a Submit's jobs together, so that the
// command stays below MaxCommand.
const MaxSubmit = MaxCommand - 1024

// SizeBound returns an upper bound of the bytes that the job takes in an
// encoded command, for those who fill Submits.
func (j *JobSpec) SizeBound() int {
	const numbers = 15 * 10 // each field, and each list's length, as the longest varint
	size := numbers + len(j.Payload)
	for _, list := range [...][]string{j.Only, j.Not} {
		for _, s := range list {
			size += 1 + len(s)
		}
	}
	for _, s := range j.Selectors {
		size += 2 + len(s)
	}
	return size
}

// Validate checks the bounds; the error names the field and the bound.
func (j *JobSpec) Validate() error {
	if j.Num == 0 {
		return fmt.Errorf("%w: num 0: jobs are numbered from 1", ErrOutOfBounds)
	}
	return firstError(
		within("count", int64(j.Count), 1, MaxCount),
		within("milli_cpu", j.Need.MilliCPU, 1, MaxMilliCPU),
		CheckResources("", j.Need),
		within("timeout_ms", j.TimeoutMs, 0, MaxTimeoutMs),
		within("max_attempts", int64(j.MaxAttempts), 1, MaxAttempts),
		within("on_loss", int64(j.OnLoss), 0, int64(Never)),
		within("priority", int64(j.Priority), -MaxPriority, MaxPriority),
		CheckSites("only", j.Only),
		CheckSites("not", j.Not),
		CheckSelectors(j.Selectors),
		within("created_ms", j.CreatedMs, 0, MaxUnixMs),
		within("bytes of payload", int64(len(j.Payload)), 0, MaxPayload),
	)
}

// Validate checks the bounds, the order of the machines, and that their total
// is within the bounds of one site.
func (b *Offer) Validate() error {
	if err := within("machines", int64(len(b.Machines)), 0, MaxMachines); err != nil {
		return err
	}
	if err := b.checkLabels(); err != nil {
		return err
	}
	var sum Resources // at most MaxMachines·1e9: no overflow
	for i := range b.Machines {
		m := &b.Machines[i]
		if err := firstError(
			CheckMachineName(m.Name), CheckResources("machine's ", m.Resources), CheckResources("whole machine's ", m.Whole),
			within("runs", int64(m.Runs), 0, int64(RunsBoth)), within("slots", m.Slots, 0, MaxSlots),
		); err != nil {
			return err
		}
		if i > 0 && b.Machines[i-1].Name >= m.Name {
			return fmt.Errorf("%w: machines %.64q, %.64q are not sorted and unique", ErrOutOfBounds, b.Machines[i-1].Name, m.Name)
		}
		sum.MilliCPU += m.MilliCPU
		sum.MemMiB += m.MemMiB
		sum.GPU += m.GPU
	}
	return firstError(CheckResources("all machines' ", sum),
		CheckResources("capacity's ", b.Capacity), CheckResources("home's ", b.Home))
}

// Validate checks the bounds.
func (b *Started) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(a.Validate(), within("delay_ms", a.DelayMs, 0, MaxTimeoutMs)); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks that every attempt has a bound within the longest duration.
func (b *Bound) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(a.Validate(), within("bound_ms", a.BoundMs, 1, MaxTimeoutMs)); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the bounds.
func (b *Complete) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(
			a.AttemptRef.Validate(),
			within("outcome", int64(a.Outcome), 0, int64(Lost)),
			within("delay_ms", a.DelayMs, 0, MaxTimeoutMs),
			within("run_ms", a.RunMs, 0, MaxTimeoutMs),
			within("bytes of detail", int64(len(a.Detail)), 0, MaxDetail),
		); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the bounds of the attempts, the reason and the offer.
func (b *Decline) Validate() error {
	err := firstError(inAttempts("attempts", b.Attempts, MaxReports),
		within("bytes of reason", int64(len(b.Reason)), 0, MaxDetail))
	if err != nil || b.Offer == nil {
		return err
	}
	return b.Offer.Validate()
}

// Validate checks the bounds.
func (b *Cancel) Validate() error {
	if b.At != "" && !ValidSite(b.At) {
		return fmt.Errorf("%w: at: %.80q is no site name", ErrOutOfBounds, b.At)
	}
	return firstError(inJob(b.Job), within("task", b.Task, -1, MaxCount-1))
}

// Validate checks that the reason is known.
func (b *Close) Validate() error { return within("why", int64(b.Why), 0, int64(LastClosure)) }

// Validate checks the bounds of every row.
func (b *Usage) Validate() error {
	if err := within("rows", int64(len(b.Rows)), 0, MaxUsageRows); err != nil {
		return err
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if err := firstError(
			within("task", int64(r.Task), 0, MaxCount-1),
			CheckResources("", r.Need),
			within("ago_ms", r.AgoMs, 0, MaxTimeoutMs),
			within("run_ms", r.RunMs, 0, MaxTimeoutMs),
			within("wait_ms", r.WaitMs, 0, MaxTimeoutMs),
		); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the site's name.
func (b *SiteLost) Validate() error { return inSite("site", b.Site) }

// Validate checks the site's name.
func (b *Forget) Validate() error { return inSite("site", b.Site) }

// Validate checks the parameters.
func (b *SetParams) Validate() error { return b.Params.Validate() }

// Validate checks the site's name.
func (b *Suspect) Validate() error { return inSite("site", b.Site) }

// Validate checks the addresses' lengths.
func (b *Addresses) Validate() error { return inAddresses(b.HTTP, b.Peer, b.Gossip) }

// Validate implements Body.
func (b *Leave) Validate() error { return nil }

// Validate checks that there is such a version.
func (b *Raise) Validate() error {
	return within("version", int64(b.Version), FirstVersion, math.MaxUint32)
}

// Validate checks that there is such an epoch, and that the wait ends.
func (b *Recover) Validate() error {
	return firstError(within("epoch", int64(b.Epoch), 1, MaxEpoch), within("hold_ms", b.HoldMs, 0, MaxTimeoutMs))
}

// Validate checks the job's name and the task's index.
func (a *AttemptRef) Validate() error {
	return firstError(inJob(a.Job), within("task", int64(a.Task), 0, MaxCount-1))
}

// Validate checks that the policy is known and every number in its bounds;
// the error names the field and the bound.
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

// firstError returns the first error, or nil. cmp.Or does the same, by a call to the
// runtime for each.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// within is small so that it is inlined: decoding asks it for every number.
func within(field string, v, low, high int64) error {
	if v < low || v > high {
		return outside("", field, v, low, high)
	}
	return nil
}

func outside(prefix, field string, v, low, high int64) error {
	return &BoundError{prefix + field, v, low, high}
}

// BoundError is a number that is out of its bounds.
type BoundError struct {
	Field            string
	Value, Low, High int64 // both ends are allowed
}

// Error implements error.
func (e *BoundError) Error() string {
	return fmt.Sprintf("%v: %s %d is not in %d…%d", ErrOutOfBounds, e.Field, e.Value, e.Low, e.High)
}

// Unwrap has every BoundError be ErrOutOfBounds.
func (*BoundError) Unwrap() error { return ErrOutOfBounds }

// CheckResources reports which part of resources is out of its bounds; whose begins the
// field's name.
func CheckResources(whose string, r Resources) error {
	switch {
	case r.MilliCPU < 0 || r.MilliCPU > MaxMilliCPU:
		return outside(whose, "milli_cpu", r.MilliCPU, 0, MaxMilliCPU)
	case r.MemMiB < 0 || r.MemMiB > MaxMemMiB:
		return outside(whose, "mem_mib", r.MemMiB, 0, MaxMemMiB)
	case r.GPU < 0 || r.GPU > MaxGPU:
		return outside(whose, "gpu", r.GPU, 0, MaxGPU)
	}
	return nil
}

func inAttempts(field string, refs []AttemptRef, most int64) error {
	if err := within(field, int64(len(refs)), 0, most); err != nil {
		return err
	}
	for i := range refs {
		if err := refs[i].Validate(); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

func inAddresses(http, peer, gossip string) error {
	return firstError(within("bytes of http", int64(len(http)), 0, MaxAddress),
		within("bytes of peer", int64(len(peer)), 0, MaxAddress),
		within("bytes of gossip", int64(len(gossip)), 0, MaxAddress))
}

func inJob(id JobID) error {
	if id.Num == 0 {
		return fmt.Errorf("%w: job %.80q has number 0: jobs are numbered from 1", ErrOutOfBounds, id.Site)
	}
	return inSite("job's site", id.Site)
}

func inSite(field, s string) error {
	if !ValidSite(s) {
		return fmt.Errorf("%w: %s %.80q is no site name (a DNS label in lower case)", ErrOutOfBounds, field, s)
	}
	return nil
}

// CheckSites checks that names are those of sites, sorted and unique.
func CheckSites(field string, list []string) error {
	if err := within(field, int64(len(list)), 0, MaxSiteNames); err != nil {
		return err
	}
	for i, s := range list {
		if err := inSite(field, s); err != nil {
			return err
		}
		if i > 0 && list[i-1] >= s {
			return fmt.Errorf("%w: %s: %q, %q are not sorted and unique", ErrOutOfBounds, field, list[i-1], s)
		}
	}
	return nil
}

// CheckMachineName checks that a machine can be called so.
func CheckMachineName(name string) error {
	if err := within("bytes of a machine's name", int64(len(name)), 1, MaxMachineName); err != nil {
		return err
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return fmt.Errorf("%w: machine name %q holds more than printable ASCII without spaces", ErrOutOfBounds, name)
		}
	}
	return nil
}
