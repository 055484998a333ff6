package fsm

import "github.com/cloudshare/cloudshare/sched"

// bounds are the sizes at which the state begins to do something else: to refuse, to
// forget, to put off. They decide, so all members have the same ones, and they are no
// part of a snapshot. They stand in one place so that tests can scale them down:
// what is wrong at a bound shows in minutes where it is 8, and in years where it is
// a million.
type bounds struct {
	window  uint64 // results kept per site
	waiting uint64 // tasks
	jobs    int    // kept
	shapes  int    // requirements of one site's open jobs
	held    int    // attempts at one site
	boots   int    // processes of one site remembered
	detail  uint32 // tasks of a job that keeps records
	records int    // of ended tasks
	retire  int    // jobs that leave in one entry

	reserveEveryMs int64 // log time between searches for reservations
	reserveAtOnce  int   // made in one search
	ranTasks       int64 // after so many, what a site's tasks ran lately is halved
	slack          int   // dead entries of a list that are not worth dropping
}

// realBounds are those of every federation.
func realBounds() bounds {
	return bounds{
		window: Window, waiting: MaxWaiting, jobs: MaxJobs, shapes: MaxShapes, held: MaxHeld, boots: maxBoots,
		detail: DetailTasks, records: maxRecords, retire: maxRetire,
		reserveEveryMs: reserveEveryMs, reserveAtOnce: reserveAtOnce, ranTasks: ranTasks, slack: 64,
	}
}

// maxNextReserve is the latest log time of a search for reservations.
func (b *bounds) maxNextReserve() int64 { return sched.MaxNow + b.reserveEveryMs }
