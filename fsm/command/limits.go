package command

import (
	"github.com/cloudshare/cloudshare/sched"
)

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
