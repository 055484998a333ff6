package fsm

import (
	"slices"
	"sort"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// cell is what one owner's tasks used of one executor's machines. A row of the matrix is an owner's
// cells, sorted by executor.
type cell struct {
	executor int32
	tasks    uint64
	sums     sched.Sums
}

// charge adds one ended run to the ledger: the same sums to the matrix, to what the executor gave and to
// what the owner used, so that priorities sum to zero.
func (s *ranking) charge(owner, executor *site, weight, start, end, queued int64) {
	var sums sched.Sums
	sums.Add(weight, start, end, queued)
	c := s.cell(owner, executor.id)
	c.tasks++
	c.sums.Plus(sums)
	owner.account.Used.Plus(sums)
	executor.account.Gave.Plus(sums)
}

// cell returns an owner's cell for writing.
func (s *ranking) cell(owner *site, executor int32) *cell {
	if owner.rowEpoch != s.epoch {
		owner.row, owner.rowEpoch = slices.Clone(owner.row), s.epoch
	}
	i := sort.Search(len(owner.row), func(i int) bool { return owner.row[i].executor >= executor })
	if i == len(owner.row) || owner.row[i].executor != executor {
		owner.row = slices.Insert(owner.row, i, cell{executor: executor})
	}
	return &owner.row[i]
}

// usage executes a Usage: what a site ran for itself outside the log.
func (s *State) usage(x *site, c *command.Usage) command.Result {
	if c.Batch != x.usageBatch+1 {
		return command.Result{Code: command.OutOfOrder, NextUsage: x.usageBatch + 1}
	}
	x.usageBatch = c.Batch
	for i := range c.Rows {
		r := &c.Rows[i]
		x.maxNum = max(x.maxNum, r.Job) // a number used at home is used
		start := max(0, s.time-r.AgoMs-r.RunMs)
		end := min(s.time, start+r.RunMs) // log time may not have moved while it ran
		queued := max(0, start-r.WaitMs)
		s.tellHome(x, r, queued, start, end)
		s.charge(x, x, s.weight(r.Need), s.quanta(start), s.quanta(end), s.quanta(queued))
		x.homeRan = x.homeRan.Add(sched.Mul64(s.weight(r.Need), s.quanta(end)-s.quanta(start)))
	}
	s.setShare(x)
	return command.Result{NextUsage: x.usageBatch + 1}
}

// setShare recomputes what FAIRSHARE uses of a site: its current contribution, which is what it lends, and
// which part of its use nobody else has seen. With Params.ClaimedHome both include what the site itself
// reports.
func (s *ranking) setShare(x *site) {
	x.account.Share, x.account.Unseen = 0, x.homeRan
	if x.present() {
		x.account.Share = x.exposed.MilliCPU
	}
	if !s.params.ClaimedHome {
		return
	}
	x.account.Unseen = sched.Int128{}
	if x.present() {
		x.account.Share += x.home.MilliCPU
	}
}

// standing returns a site's contribution, utility and priority now, by the policy in force.
func (s *ranking) standing(x *site) (contribution, utility, priority sched.Int128) {
	return sched.Standing(s.params.Policy, s.params.Running, &x.account, s.quanta(s.time))
}
