package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/sched"
)

// bounds are the sizes at which the state changes its behaviour: refuses, forgets or defers. They affect
// decisions, so all members have the same ones, and they are not part of a snapshot. They are collected
// here so that tests can scale them down: a mistake at a bound shows within minutes if the bound is 8,
// and within years if it is a million.
type bounds struct {
	version uint32            // newest apply version known: always Version except in tests
	window  uint64            // results kept per site
	shapes  int               // different requirements of one site's open jobs
	members int               // sites that ever registered
	held    int               // attempts at one site
	site    command.Resources // of all machines of one site together
	boots   int               // processes of one site that are remembered
	doubts  uint32            // times that hints may make a task continue elsewhere
	detail  uint32            // tasks of a job that keeps records
	retire  int               // jobs that leave in one entry
	steps   uint64            // of an entry, beyond which it leaves work to the next; see steps.go

	// Quotas of sites; see limits.
	tasks, jobs, bytes, kept, keptBytes, records, delivering share

	roster roster.Bounds // of members, invitations and motions

	gaps uint64 // ranges of numbers of jobs that left, besides as many as there are jobs

	reserveEveryMs int64 // log time between searches for reservations
	reserveAtOnce  int   // reservations made in one search
	ranTasks       int64 // after this many, the recent run time of a site's tasks is halved
	stopMs         int64 // log time within which a site must report the end of what it is to stop
}

// What a site may have whoever else joins. It is enough for any single job.
const (
	floorTasks = command.MaxCount
	floorBytes = 2 << 20
)

// realBounds returns the bounds of every federation.
func realBounds() bounds {
	return bounds{
		version: Version, window: command.Window, shapes: MaxShapes, members: MaxMembers, held: command.MaxHeld,
		site: command.Resources{
			MilliCPU: command.MaxMilliCPU, MemMiB: command.MaxMemMiB, GPU: command.MaxGPU,
		},
		boots: maxBoots, doubts: maxDoubts, detail: DetailTasks, retire: maxRetire, steps: maxSteps,
		tasks: share{100_000_000, floorTasks}, jobs: share{4_000_000, 1000}, bytes: share{2 << 30, floorBytes},
		kept: share{command.MaxRetainJobs, 1000}, keptBytes: share{1 << 30, floorBytes},
		records:        share{1_000_000, 1000},
		delivering:     share{1_000_000, 1000},
		roster:         roster.RealBounds(MaxMembers),
		gaps:           1 << 16,
		reserveEveryMs: reserveEveryMs, reserveAtOnce: reserveAtOnce, ranTasks: ranTasks, stopMs: stopMs,
	}
}

// maxNextReserve returns the latest log time of a search for reservations.
func (b *bounds) maxNextReserve() int64 { return sched.MaxNow + b.reserveEveryMs }
