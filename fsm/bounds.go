package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// bounds are the sizes at which the state begins to do something else: to refuse, to
// forget, to put off. They decide, so all members have the same ones, and they are no
// part of a snapshot. They stand in one place so that tests can scale them down:
// what is wrong at a bound shows in minutes where it is 8, and in years where it is
// a million.
type bounds struct {
	version uint32            // newest apply version known: always Version but in tests
	window  uint64            // results kept per site
	shapes  int               // requirements of one site's open jobs
	members int               // sites that ever registered
	held    int               // attempts at one site
	site    command.Resources // of one site's machines together
	boots   int               // processes of one site remembered
	doubts  uint32            // times that hints have a task go on elsewhere
	detail  uint32            // tasks of a job that keeps records
	retire  int               // jobs that leave in one entry
	steps   uint64            // of an entry, beyond which it leaves work to the next; see steps.go

	// Quotas of sites; see limits.
	tasks, jobs, bytes, kept, keptBytes, records share

	gaps uint64 // ranges of numbers of jobs that left, beside as many as jobs

	reserveEveryMs int64 // log time between searches for reservations
	reserveAtOnce  int   // made in one search
	ranTasks       int64 // after so many, what a site's tasks ran lately is halved
	stopMs         int64 // log time that a site has to report the end of what it is to stop
}

// What a site may have whatever others join. It suffices for any one job.
const (
	floorTasks = command.MaxCount
	floorBytes = 2 << 20
)

// realBounds are those of every federation.
func realBounds() bounds {
	return bounds{
		version: Version, window: command.Window, shapes: MaxShapes, members: MaxMembers, held: command.MaxHeld, site: command.Resources{MilliCPU: command.MaxMilliCPU, MemMiB: command.MaxMemMiB, GPU: command.MaxGPU}, boots: maxBoots, doubts: maxDoubts, detail: DetailTasks, retire: maxRetire, steps: maxSteps,
		tasks: share{100_000_000, floorTasks}, jobs: share{4_000_000, 1000}, bytes: share{2 << 30, floorBytes},
		kept: share{command.MaxRetainJobs, 1000}, keptBytes: share{1 << 30, floorBytes}, records: share{1_000_000, 1000},
		gaps:           1 << 16,
		reserveEveryMs: reserveEveryMs, reserveAtOnce: reserveAtOnce, ranTasks: ranTasks, stopMs: stopMs,
	}
}

// maxNextReserve is the latest log time of a search for reservations.
func (b *bounds) maxNextReserve() int64 { return sched.MaxNow + b.reserveEveryMs }
