package turn

import (
	"iter"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/node"
)

// StateReader is what the core reads of the replicated state; a *fsm.State is one.
type StateReader interface {
	Index() uint64
	Version() uint32 // apply version in force
	Assignment(site string, ref command.AttemptRef) (fsm.Assignment, bool)
	CouldBegin(site string, ref command.AttemptRef) bool
	AssignmentsSince(site string, entry uint64) (changed []fsm.Assignment, whole bool)
	SiteChange(site string) uint64
	SiteState(site string) (state fsm.SiteState, incarnation uint64)
	Member(site string) (m roster.Member, known bool)
	Epoch() uint64
	WaitingFits(site string) bool
	AnyFits(spec command.JobSpec) (bool, string)
	Job(id command.JobID) (fsm.JobView, bool)
	Retired(id command.JobID) bool
	TaskCounts(id command.JobID) (fsm.Counts, bool)
	OwnJobs(site string) iter.Seq[fsm.JobView]
	Admits(site string, spec *command.JobSpec) command.Code
	node.QuotaReader
	Queue() []fsm.QueueView
	Lent() int64
	Params() command.Params
	Time() int64 // in ms
	Gates(id command.JobID, from uint32, most int) (fsm.GatesView, bool)
	ReturnedSince(owner string, entry uint64) (changed []fsm.HeldTask, whole bool)
	ReturnedChange(owner string) uint64
	EndedRuns(id command.JobID) iter.Seq[fsm.EndedRun]
	Site(name string) (fsm.SiteView, bool)
}

// Clock is the moment of an event, read by the shell.
type Clock struct {
	Wall time.Time
	Boot int64 // CLOCK_BOOTTIME in nanoseconds
	// Up is how long this process has run, by a clock that nobody sets and that
	// stands still while the machine is suspended.
	Up time.Duration
}

// MaxReports bounds the attempts in one command that reports on attempts.
const MaxReports = 1000

// Span makes a difference of wall clocks, in milliseconds, fit to be reported: they may
// have been set in between, by any amount.
func Span(ms int64) int64 { return min(max(ms, 0), command.MaxTimeoutMs) }
