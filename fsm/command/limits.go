package command

import (
	"github.com/cloudshare/cloudshare/sched"
)

// Bounds of what a command may hold. They protect memory and the arithmetic of the ledger. Decoding
// refuses what exceeds them, and a refused entry stops the node, so a new version may raise a bound
// but must never lower one.
const (
	// MaxCount bounds the tasks of one job.
	MaxCount = 1_000_000
	// MaxPayload bounds the bytes of a job's payload: a request body of 1 MiB, and 64 KiB for what
	// its stored form adds.
	MaxPayload = 1<<20 + 64<<10
	// MaxJobsPerSubmit bounds the jobs of one Submit; see also MaxCommand and SizeBound.
	MaxJobsPerSubmit = 4096
	// MaxSiteNames bounds the names in a job's Only or Not.
	MaxSiteNames = 1000
	// MaxMachines bounds the machines of one offer.
	MaxMachines = 10_000
	// MaxMachineName bounds the bytes of a machine's name.
	MaxMachineName = 128
	// MaxAddress bounds the bytes of a host:port.
	MaxAddress = 300
	// MaxDetail bounds the bytes of an outcome's detail or a decline's reason; see Clip.
	MaxDetail = 256
	// MaxReports bounds the attempts in one Started, Bound, Complete, Deliver or Decline.
	MaxReports = 10_000
	// MaxKnown bounds the boots in a Register.
	MaxKnown = 64
	// MaxHeld bounds the attempts in each list of a Register.
	MaxHeld = 80_000
	// MaxUsageRows bounds the rows of one Usage.
	MaxUsageRows = 1000
	// MaxAttempts bounds a job's max_attempts.
	MaxAttempts = 1000
	// MaxPriority bounds |priority|.
	MaxPriority = 1_000_000
	// MaxNice bounds nice.
	MaxNice = 1000
	// MaxTimeoutMs bounds every duration: 10 years of 366 days.
	MaxTimeoutMs = sched.MaxNow
	// MaxUnixMs bounds dates that are for people: the end of year 9999.
	MaxUnixMs = 253_402_300_799_999
	// MaxRetainJobs bounds the ended jobs kept of one site.
	MaxRetainJobs = 500_000
	// MaxQuantumMs is the longest quantum: one hour.
	MaxQuantumMs = 3_600_000

	// MaxCommand bounds the bytes of one encoded command, MaxBatch those of one encoded batch.
	MaxCommand = 16 << 20
	MaxBatch   = 32 << 20
	// MaxCommands bounds the commands of one batch.
	MaxCommands = 65_536
)

// Bounds of resources: of one task, of one machine, and of all machines in one site's offer together.
// With rates up to MaxRate, a task, and all that a site exposes at one moment, weighs at most
//
//	1000·(1e9 + 1e9 + 1e6) = MaxTaskWeight ≈ 2.0e12
//
// a quantum. That is 1/50 of sched.MaxWeight: at the highest rates the ledger is proven exact for 50
// sites of the greatest size, at the default rates (one a milli-core) for 100,000 of them, that is
// 1e11 cores.
const (
	MaxMilliCPU   = 1_000_000_000 // a million cores
	MaxMemMiB     = 1_000_000_000 // about a PiB
	MaxGPU        = 1_000_000
	MaxRate       = 1000
	MaxTaskWeight = MaxRate * (MaxMilliCPU + MaxMemMiB + MaxGPU)
)

// The proof's first step, checked by the compiler.
const _ = uint(sched.MaxWeight - 49*MaxTaskWeight)
