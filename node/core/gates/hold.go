package gates

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// queuedIn returns the first runs of a job's tasks that were released, never ran, and wait.
func queuedIn(s turn.StateReader, id command.JobID) (queued []fsm.TaskRun) {
	for from := uint32(0); len(queued) < spansPerJob*command.MaxGatePieces; {
		v, known := s.Gates(id, from, piecesPerPage)
		if queued = append(queued, v.Queued...); !known || v.Next == 0 {
			return queued
		}
		from = v.Next
	}
	return queued
}

// holdsOf returns disjoint runs of all of a job's tasks that have those held that wait. A run moves a few pieces only,
// so there are half of spansPerJob by where the tasks are that never ran, and as many of equal length, for those that
// have run and wait again: of them the state does not tell where they are.
func holdsOf(count uint32, queued []fsm.TaskRun) (runs []command.GateRun) {
	const most = spansPerJob / 2
	cuts := []uint32{0, count}
	for i := command.MaxGatePieces; i < len(queued) && len(cuts) < most; i += command.MaxGatePieces {
		cuts = append(cuts, queued[i].From)
	}
	for i := range uint64(most) {
		cuts = append(cuts, uint32(uint64(count)*i/most))
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts); i++ {
		runs = append(runs, command.GateRun{
			From: cuts[i-1], To: cuts[i], Attempt: command.AnyAttempt, Do: command.GateHold,
		})
	}
	return runs
}

// withHolds merges runs that end tasks with those that hold others, and cuts the latter so that all are disjoint. Both
// are in order.
func withHolds(ends, holds []command.GateRun) (runs []command.GateRun) {
	for _, h := range holds {
		for len(ends) > 0 && ends[0].From < h.To {
			e := ends[0]
			if h.From < e.From {
				before := h
				before.To = e.From
				runs = append(runs, before)
			}
			if e.To > h.To { // it goes on in the next one
				e.To = h.To
				ends[0].From = h.To
			} else {
				ends = ends[1:]
			}
			runs = append(runs, e)
			h.From = e.To
		}
		if h.From < h.To {
			runs = append(runs, h)
		}
	}
	return runs
}
