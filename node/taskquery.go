package node

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TaskQuery selects and pages the tasks of one job; zero fields select all.
type TaskQuery struct {
	States fsm.TaskStates
	Only   jobspec.Indices // the tasks with these indices, if not empty
	From   uint32          // the tasks whose index is not below
	Limit  int             // ≥ 1
}

// Walk calls look for the positions [from, to) of each range of tasks that the
// query may select, until look stops short, and returns the index to go on with.
func (q *TaskQuery) Walk(n *jobspec.Numbering, look func(from, to uint32) (stopped uint32)) (next uint32) {
	walkRange := func(first, end uint32) bool { // positions
		if stopped := look(first, end); stopped < end {
			next = n.Index(stopped)
			return false
		}
		return true
	}
	begin := n.Position(q.From)
	if q.Only.Len() == 0 {
		walkRange(begin, n.Size())
		return next
	}
	for from, to := range q.Only.Spans() {
		first, end := max(begin, n.Position(from)), n.Position(to+1)
		if first < end && !walkRange(first, end) {
			return next
		}
	}
	return 0
}
