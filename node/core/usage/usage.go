// Package usage reports a site's home runs to the federation's ledger, each exactly once.
package usage

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// maxUnreported is how many ended home runs may wait for their report, besides those that
// run: 84 MB of the journal, 18 MB of memory and two seconds of a start. Beyond it a
// site that is cut off starts nothing: it could not account for what it ran.
const maxUnreported = 250_000

// ErrUnreported is why nothing is started at home with maxUnreported.
var ErrUnreported = fmt.Errorf("%d runs are not in the ledger yet, since the federation is out of reach: it goes on as these are reported", maxUnreported)

// Book reports home runs to the ledger, each exactly once: a row is synced
// with the end of its run, rows are bound into numbered batches, and the state
// takes only the batch that is the next one.
type Book struct {
	out *turn.Outbox
	now *turn.Clock

	rows   []Row  // not in a batch yet; their journal keys end with seq, without gaps
	most   int    // of rows, with which another run may begin
	seq    uint64 // last journal key given
	next   uint64 // number of the next batch; valid once registered
	open   []Row  // the batch under way, nil = none; the only one in the journal
	openNo uint64
}

// NewBook returns a book without rows, whose batches go to the outbox.
func NewBook(out *turn.Outbox, now *turn.Clock) Book {
	return Book{out: out, now: now, most: maxUnreported}
}

// Limit bounds how many ended runs may wait for their report.
func (u *Book) Limit(most int) { u.most = most }

// Full reports whether no other run could be accounted for.
func (u *Book) Full() bool { return len(u.rows) >= u.most }

// Add notes an ended home run.
func (u *Book) Add(row Row, fx *turn.Effects) {
	u.seq++
	u.rows = append(u.rows, row)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketRows, record.Number(u.seq), row))
}

// Unreported returns how many ended runs no batch holds yet.
func (u *Book) Unreported() int { return len(u.rows) }

// Report binds waiting rows into a batch and proposes it.
func (u *Book) Report(fx *turn.Effects) {
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
	u.send()
}

func (u *Book) send() {
	cmd := &command.Usage{Batch: u.openNo}
	now := u.now.Wall.UnixMilli()
	for _, r := range u.open {
		cmd.Rows = append(cmd.Rows, command.UsageRow{
			Job: r.Job, Task: r.Task, Need: r.Need,
			AgoMs: turn.Span(now - r.EndedMs), RunMs: turn.Span(r.RunMs), WaitMs: turn.Span(r.WaitMs),
		})
	}
	u.out.Add(cmd, func(_ command.Result, _ turn.StateReader, fx *turn.Effects) {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketUsage, record.Number(u.openNo)))
		u.next, u.open = u.openNo+1, nil
	})
}

// Recover reads rows and the open batch of an earlier life.
func (u *Book) Recover(j record.Reader) error {
	err := j.Each(record.BucketRows, func(k, v []byte) error {
		var r Row
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

// Resume goes on after the state said which batch it expects. A batch below
// that was applied before the restart. One above was not: a new epoch may have
// forgotten earlier batches, and the open one takes their number.
func (u *Book) Resume(next uint64, fx *turn.Effects) {
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
		fx.Writes = append(fx.Writes, record.Remove(record.BucketUsage, record.Number(u.openNo)),
			record.PutRecord(record.BucketUsage, record.Number(next), u.open))
		u.openNo = next
	}
	u.send()
}

// Row is an ended home run, kept until a usage batch with it is applied.
type Row struct {
	Job     uint64            `json:"job"`
	Task    uint32            `json:"task"`
	Need    command.Resources `json:"need"`
	EndedMs int64             `json:"ended_ms"` // unix milliseconds
	RunMs   int64             `json:"run_ms"`
	WaitMs  int64             `json:"wait_ms"`
}
