package core

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/record"
)

// maxUnreported is how many ended home runs may wait for their report, besides those that
// run: 84 MB of the journal, 18 MB of memory and two seconds of a start. Beyond it a
// site that is cut off starts nothing: it could not account for what it ran.
const maxUnreported = 250_000

// errUnreported is why nothing is started at home with maxUnreported.
var errUnreported = fmt.Errorf("%d runs are not in the ledger yet, since the federation is out of reach: it goes on as these are reported", maxUnreported)

// usageBook reports home runs to the ledger, each exactly once: a row is synced
// with the end of its run, rows are bound into numbered batches, and the state
// takes only the batch that is the next one.
type usageBook struct {
	rows   []usageRow // not in a batch yet; their journal keys end with seq, without gaps
	most   int        // of rows, with which another run may begin
	seq    uint64     // last journal key given
	next   uint64     // number of the next batch; valid once registered
	open   []usageRow // the batch under way, nil = none; the only one in the journal
	openNo uint64
}

// full reports whether no other run could be accounted for.
func (u *usageBook) full() bool { return len(u.rows) >= u.most }

// addUsage notes an ended home run. Lost runs credit and debit nobody.
func (c *Core) addUsage(num uint64, a *attempt, r executor.Result, fx *Effects) {
	if r.Run <= 0 || outcomeOf(r, a.stopping) == command.Lost {
		return
	}
	row := usageRow{
		Job: num, Task: c.home.jobs[num].index(a.ID.Task), Need: command.Resources(a.Need),
		EndedMs: r.Started.Add(r.Run).UnixMilli(), RunMs: r.Run.Milliseconds(),
		WaitMs: span(r.Started.UnixMilli() - c.home.jobs[num].Spec.CreatedMs),
	}
	c.home.jobs[num].Tasks[a.ID.Task].runMs = row.RunMs
	c.usage.seq++
	c.usage.rows = append(c.usage.rows, row)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketRows, record.Number(c.usage.seq), row))
}

// reportUsage binds waiting rows into a batch and has it ordered.
func (c *Core) reportUsage(fx *Effects) {
	u := &c.usage
	if u.open != nil || len(u.rows) == 0 {
		return
	}
	first := u.seq - uint64(len(u.rows)) + 1
	n := min(len(u.rows), command.MaxUsageRows)
	for i := range n {
		fx.Writes = append(fx.Writes, record.Remove(record.BucketRows, record.Number(first+uint64(i))))
	}
	u.open, u.rows = u.rows[:n:n], u.rows[n:]
	u.openNo = u.next
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketUsage, record.Number(u.openNo), u.open))
	c.sendUsage()
}

func (c *Core) sendUsage() {
	u := &c.usage
	cmd := &command.Usage{Batch: u.openNo}
	now := c.now.Wall.UnixMilli()
	for _, r := range u.open {
		cmd.Rows = append(cmd.Rows, command.UsageRow{
			Job: r.Job, Task: r.Task, Need: r.Need,
			AgoMs: span(now - r.EndedMs), RunMs: span(r.RunMs), WaitMs: span(r.WaitMs),
		})
	}
	c.out.add(cmd, func(_ command.Result, _ StateReader, fx *Effects) {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketUsage, record.Number(u.openNo)))
		u.next, u.open = u.openNo+1, nil
	})
}

// recoverUsage reads rows and the open batch of an earlier life.
func (c *Core) recoverUsage(j record.Reader) error {
	u := &c.usage
	err := j.Each(record.BucketRows, func(k, v []byte) error {
		var r usageRow
		if err := json.Unmarshal(v, &r); err != nil {
			return fmt.Errorf("usage row %x: %w", k, err)
		}
		u.rows = append(u.rows, r)
		u.seq = max(u.seq, record.DecodeNumber(k))
		return nil
	})
	if err != nil {
		return err
	}
	return j.Each(record.BucketUsage, func(k, v []byte) error {
		u.openNo = record.DecodeNumber(k)
		if err := json.Unmarshal(v, &u.open); err != nil {
			return fmt.Errorf("usage batch %d: %w", u.openNo, err)
		}
		return nil
	})
}

// resumeUsage goes on after the state said which batch it expects. A batch below
// that was applied before the restart. One above was not: a new epoch may have
// forgotten earlier batches, and the open one takes their number.
func (c *Core) resumeUsage(next uint64, fx *Effects) {
	u := &c.usage
	u.next = next
	if u.open == nil {
		return
	}
	if u.openNo < next {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketUsage, record.Number(u.openNo)))
		u.open = nil
		return
	}
	if u.openNo > next {
		fx.Writes = append(fx.Writes, record.Remove(record.BucketUsage, record.Number(u.openNo)), record.PutRecord(record.BucketUsage, record.Number(next), u.open))
		u.openNo = next
	}
	c.sendUsage()
}

// usageRow is an ended home run, kept until a usage batch with it is applied.
type usageRow struct {
	Job     uint64            `json:"job"`
	Task    uint32            `json:"task"`
	Need    command.Resources `json:"need"`
	EndedMs int64             `json:"ended_ms"` // unix milliseconds
	RunMs   int64             `json:"run_ms"`
	WaitMs  int64             `json:"wait_ms"`
}
