package node

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// usageBook reports home runs to the ledger, each exactly once: a row is synced
// with the end of its run, rows are bound into numbered batches, and the state
// takes only the batch that is the next one.
type usageBook struct {
	rows   []usageRow // not in a batch yet; their journal keys end with seq, without gaps
	seq    uint64     // last journal key given
	next   uint64     // number of the next batch; valid once registered
	open   []usageRow // the batch under way, nil = none; the only one in the journal
	openNo uint64
}

// addUsage notes an ended home run. Lost runs credit and debit nobody.
func (c *core) addUsage(num uint64, a *attempt, r executor.Result, fx *effects) {
	if r.Run <= 0 || outcomeOf(r, a.stopping) == fsm.Lost {
		return
	}
	row := usageRow{
		Job: num, Task: c.home.jobs[num].index(a.ID.Task), Need: fsm.Resources(a.Need),
		EndedMs: r.Started.Add(r.Run).UnixMilli(), RunMs: r.Run.Milliseconds(),
		WaitMs: span(r.Started.UnixMilli() - c.home.jobs[num].Spec.CreatedMs),
	}
	c.home.jobs[num].Tasks[a.ID.Task].runMs = row.RunMs
	c.usage.seq++
	c.usage.rows = append(c.usage.rows, row)
	fx.writes = append(fx.writes, putRecord(bucketRows, number(c.usage.seq), row))
}

// reportUsage binds waiting rows into a batch and has it ordered.
func (c *core) reportUsage(fx *effects) {
	u := &c.usage
	if u.open != nil || len(u.rows) == 0 {
		return
	}
	first := u.seq - uint64(len(u.rows)) + 1
	n := min(len(u.rows), fsm.MaxUsageRows)
	for i := range n {
		fx.writes = append(fx.writes, remove(bucketRows, number(first+uint64(i))))
	}
	u.open, u.rows = u.rows[:n:n], u.rows[n:]
	u.openNo = u.next
	fx.writes = append(fx.writes, putRecord(bucketUsage, number(u.openNo), u.open))
	c.sendUsage()
}

func (c *core) sendUsage() {
	u := &c.usage
	cmd := &fsm.Usage{Batch: u.openNo}
	now := c.now.wall.UnixMilli()
	for _, r := range u.open {
		cmd.Rows = append(cmd.Rows, fsm.UsageRow{
			Job: r.Job, Task: r.Task, Need: r.Need,
			AgoMs: span(now - r.EndedMs), RunMs: span(r.RunMs), WaitMs: span(r.WaitMs),
		})
	}
	c.out.add(cmd, func(_ fsm.Result, _ stateReader, fx *effects) {
		fx.writes = append(fx.writes, tidy(bucketUsage, number(u.openNo)))
		u.next, u.open = u.openNo+1, nil
	})
}

// recoverUsage reads rows and the open batch of an earlier life.
func (c *core) recoverUsage(j *Journal) error {
	u := &c.usage
	err := j.each(bucketRows, func(k, v []byte) error {
		var r usageRow
		if err := json.Unmarshal(v, &r); err != nil {
			return fmt.Errorf("usage row %x: %w", k, err)
		}
		u.rows = append(u.rows, r)
		u.seq = max(u.seq, decodeNumber(k))
		return nil
	})
	if err != nil {
		return err
	}
	return j.each(bucketUsage, func(k, v []byte) error {
		u.openNo = decodeNumber(k)
		if err := json.Unmarshal(v, &u.open); err != nil {
			return fmt.Errorf("usage batch %d: %w", u.openNo, err)
		}
		return nil
	})
}

// resumeUsage goes on after the state said which batch it expects. A batch below
// that was applied before the restart. One above was not: a new epoch may have
// forgotten earlier batches, and the open one takes their number.
func (c *core) resumeUsage(next uint64, fx *effects) {
	u := &c.usage
	u.next = next
	if u.open == nil {
		return
	}
	if u.openNo < next {
		fx.writes = append(fx.writes, tidy(bucketUsage, number(u.openNo)))
		u.open = nil
		return
	}
	if u.openNo > next {
		fx.writes = append(fx.writes, remove(bucketUsage, number(u.openNo)), putRecord(bucketUsage, number(next), u.open))
		u.openNo = next
	}
	c.sendUsage()
}
