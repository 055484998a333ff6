package fsm

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// site returns why one site does not run the job.
func (q *inquiry) site(x *site) SiteWhy {
	v := SiteWhy{Site: x.name, Why: q.standing(x)}
	if v.Why != HinderedFree {
		return v
	}
	near := q.nearest(x, &v)
	if near == nil {
		return v
	}
	v.Machine = near.name
	switch {
	case x.state == Suspected:
		v.Why, v.InDoubt = HinderedSuspect, q.inDoubt(x)
	case !q.unbarred(x):
		v.Why = HinderedDeclined
	case q.heldFromUs(near) && q.shape.Need.FitsIn(near.room()):
		v.Why, v.First = HinderedReserved, q.id(near.held)
	case q.heldFromUs(near):
		v.Why, v.First, v.Short = HinderedFull, q.id(near.held), q.missing(near.room())
	case q.shape.Need.FitsIn(near.room()):
		v.First = q.id(q.firstAt(near, near.room()))
		if v.First != q.id(q.seq) {
			v.Why = HinderedTurn
		}
	default:
		v.Why = HinderedFull
		v.Short = q.missing(near.room())
		if near.isFull() {
			v.AtMost = near.slots
		}
		v.First = q.id(q.firstAt(near, near.room().Greater(q.shape.Need)))
	}
	return v
}

// inDoubt reports whether the job's next task may already run at a suspected site.
func (q *inquiry) inDoubt(x *site) bool {
	if q.job == nil || q.job.tasks.back().Len() == 0 {
		return false
	}
	slot, ok := q.s.findDoubt(q.job, q.job.tasks.back().First())
	return ok && q.s.attempts.Get(slot).site == x.id
}

// standing returns what excludes a site whatever its machines are.
func (q *inquiry) standing(x *site) Hindrance {
	switch {
	case x.state == Left:
		return HinderedLeft
	case !q.shape.Allows(x.name):
		return HinderedRule
	case x.state == SiteGone:
		return HinderedLost
	}
	return HinderedFree
}

// nearest returns the machine that lacks least to run a task: one with room, then one with room that is
// reserved for others, then the one that lacks least. If no machine ever could run it, nearest sets the reason
// in v and returns nil.
func (q *inquiry) nearest(x *site, v *SiteWhy) *machine {
	var best, small, other *machine
	offered := false
	for _, m := range x.machines {
		switch {
		case !m.runs.Takes(q.shape.Image):
			offered = true
		case !q.shape.Admits(m.labels.list()):
			if other == nil || q.shape.Unmet(m.labels.list()) < q.shape.Unmet(other.labels.list()) {
				other = m
			}
		case !q.shape.Need.FitsIn(m.whole):
			if small == nil || less(q.missing(m.whole), q.missing(small.whole)) {
				small = m
			}
		default:
			v.Machines++
			v.InUse += m.used.MilliCPU
			if !q.heldFromUs(m) {
				v.Slots += q.slots(m)
			}
			if best == nil || q.nearer(m, best) {
				best = m
			}
		}
	}
	switch {
	case best != nil:
	case small != nil:
		v.Why, v.Machine, v.Short = HinderedShape, small.name, q.missing(small.whole)
	case other != nil:
		v.Machine, v.Lacks = other.name, joined(q.shape.Lacking(other.labels.list()))
		v.Why = q.unlabelled(other)
	case offered:
		v.Why = HinderedKind
	default:
		v.Why = HinderedClosed
	}
	return best
}

// unlabelled returns how its labels hinder a machine: nothing but a network, or room for files, may be missing.
func (q *inquiry) unlabelled(m *machine) Hindrance {
	labels := m.labels.list()
	i := slices.IndexFunc(q.shape.Rules, func(r command.Selector) bool { return !r.Admits(labels) })
	switch {
	case q.shape.Unmet(labels) != 1:
	case q.shape.Rules[i].Key == command.NetworkLabel:
		return HinderedNetwork
	case command.FilesWish(q.shape.Rules[i].Key) != "":
		return HinderedFiles
	}
	return HinderedLabels
}

func (q *inquiry) nearer(a, b *machine) bool {
	short, other := q.missing(a.room()), q.missing(b.room())
	if short != other {
		return less(short, other)
	}
	return !q.heldFromUs(a) && q.heldFromUs(b)
}

// heldFromUs reports whether a machine is reserved for another job.
func (q *inquiry) heldFromUs(m *machine) bool { return m.held != 0 && m.held != q.seq }

// less orders missing resources: GPUs, then cores, then memory. GPUs are the rarest, so a machine with one
// free is nearer than any without.
func less(a, b command.Resources) bool {
	switch {
	case a.GPU != b.GPU:
		return a.GPU < b.GPU
	case a.MilliCPU != b.MilliCPU:
		return a.MilliCPU < b.MilliCPU
	}
	return a.MemMiB < b.MemMiB
}

// missing returns what room lacks for one task; no part is below zero.
func (q *inquiry) missing(room command.Resources) command.Resources {
	return q.shape.Need.Minus(room).Greater(command.Resources{})
}

// slots returns how many tasks fit on a machine now: none if a part that the task does not need is overdrawn,
// as after an offer that shrank.
func (q *inquiry) slots(m *machine) uint64 {
	room := m.room()
	if !q.shape.Need.FitsIn(room) {
		return 0
	}
	n := uint64(command.MaxMilliCPU) // each takes at least a milli-core
	if m.slots > 0 {
		n = uint64(m.slots - m.tasks)
	}
	for _, p := range [...][2]int64{
		{room.MilliCPU, q.shape.Need.MilliCPU}, {room.MemMiB, q.shape.Need.MemMiB}, {room.GPU, q.shape.Need.GPU},
	} {
		if p[1] > 0 {
			n = min(n, uint64(max(0, p[0])/p[1]))
		}
	}
	return n
}

// unbarred reports whether the site may be given a task of the job.
func (q *inquiry) unbarred(x *site) bool {
	return q.job == nil || !q.job.isBarred(x)
}

// id returns the ID of a waiting job; the hypothetical one has Num 0.
func (q *inquiry) id(seq uint64) command.JobID {
	if seq == 0 {
		return command.JobID{}
	}
	if q.job == nil && seq == q.seq {
		return command.JobID{Site: q.owner.name}
	}
	j := q.s.jobs.Get(seq)
	return q.s.idOf(j)
}
