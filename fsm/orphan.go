package fsm

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// An attempt is orphaned if what watched it was gone without a word while its site stood. Its task may have done
// that to end uncharged, with its output kept, and to be run again. So it is charged, and a few of them end the
// task as failed.

// MaxOrphans is the number of orphaned attempts that ends a task as failed, by its owner's fault.
const MaxOrphans = 5

// lossCount counts a task's losses: those of its sites, and above them its orphaned attempts. They share a number
// so that a snapshot of a state without orphans, as by version 1, has the bytes that it had.
type lossCount uint32

const (
	bySite   lossCount = 1
	orphaned lossCount = 1 << 16
)

func (n lossCount) bySite() uint32  { return uint32(n % orphaned) }
func (n lossCount) orphans() uint32 { return uint32(n / orphaned) }

// note tells a task that waits of its orphans, "" if it has none.
func (n lossCount) note() string {
	if n.orphans() == 0 {
		return ""
	}
	return fmt.Sprintf("%d of its attempts lost what watched them, or their network, which the task may have done "+
		"itself: %d end it", n.orphans(), MaxOrphans)
}

// orphans executes an Orphans.
func (s *State) orphans(x *site, c *command.Orphans) command.Result {
	return s.complete(x, (*command.Complete)(c))
}

// settleOrphan decides what happens to a task whose attempt was orphaned.
func (s *lifecycle) settleOrphan(a *attempt, r record) {
	r.losses += orphaned
	site := s.sites[a.site].name
	r.detail = cmp.Or(r.detail, "orphaned at "+site)
	switch {
	case s.jobs.Get(a.seq).onLoss == command.Never:
		s.endTask(a.seq, TaskLost, r)
	case r.losses.orphans() >= MaxOrphans:
		r.detail = OwnersFault(site, r.detail)
		s.endTask(a.seq, TaskFailed, r)
	default:
		s.requeue(a, r, command.Orphaned)
	}
}

// OwnersFault says why a task has failed whose last orphaned attempt was at a site; detail is how that ended.
func OwnersFault(site, detail string) string {
	return command.Clip(fmt.Sprintf("by its owner's fault: %d attempts lost what watched them, or their network, while "+
		"their sites stood; the task must end neither its parent nor its container nor its network's process; "+
		"the last at %s: %s", MaxOrphans, site, detail))
}

// losses reads a count that a state of this version can have.
func (r *snapReader) losses(s *State) lossCount {
	n := lossCount(r.u32("losses"))
	r.check(s.version >= command.OrphansVersion || n < orphaned, "an orphan by a version that has none")
	return n
}
