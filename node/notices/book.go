package notices

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/internal/tally"
	"github.com/cloudshare/cloudshare/node/record"
)

// Journal is where the book stands.
type Journal interface {
	record.Reader
	Commit(writes []record.Write) error
}

// Book has the notices of this site's jobs. It is safe for concurrent use.
type Book struct {
	cfg     Config
	journal Journal

	mu   sync.Mutex
	jobs map[uint64]*node.Notices
	// open counts the jobs that have some to be sent.
	open tally.ByUser[tally.Count]
	// over are the other jobs, oldest first. Invariant: at most maxDone.
	over    []uint64
	figures node.NoticeFigures

	// order is held while a record changes and is written, so that the journal has the latest last. It is locked
	// before mu.
	order sync.Mutex
}

// Open reads the book from the journal. What it holds of ended jobs is to be sent: see Sender.
func Open(cfg Config, j Journal) (*Book, error) {
	b := &Book{cfg: cfg.withDefaults(), journal: j, jobs: map[uint64]*node.Notices{}}
	err := j.Each(record.BucketNotices, func(k, v []byte) error {
		n := &node.Notices{}
		if err := json.Unmarshal(v, n); err != nil || len(k) != 8 {
			return fmt.Errorf("a record of notices is damaged: %x: %w", k, err)
		}
		b.add(record.DecodeNumber(k), n)
		return nil
	})
	slices.SortFunc(b.over, func(x, y uint64) int { return int(b.jobs[x].EndedMs - b.jobs[y].EndedMs) })
	return b, err
}

// add takes a record. REQUIRES: b.mu held, or b not shared yet.
func (b *Book) add(num uint64, n *node.Notices) {
	b.jobs[num] = n
	if !n.Open() {
		b.over = append(b.over, num)
		return
	}
	b.open.Add(n.User, 1, 1)
	if n.EndedMs != 0 {
		b.figures.Waiting += waiting(n)
	}
}

func waiting(n *node.Notices) (count int) {
	for i := range n.List {
		if n.List[i].State == node.NoticeWaiting {
			count++
		}
	}
	return count
}

// Admit says of each submission why it may not name the URLs that it does, nil = it may, or names none. Of those that
// are under way at the same time each may be the last one that there is room for.
func (b *Book) Admit(reqs []node.Request) []error {
	out := make([]error, len(reqs))
	b.mu.Lock()
	defer b.mu.Unlock()
	more := 0
	for i := range reqs {
		r := &reqs[i]
		if len(r.Spec.Notify) == 0 {
			continue
		}
		if out[i] = b.admit(r, more); out[i] == nil {
			more++
		}
	}
	return out
}

// admit is Admit of one, behind so many others. REQUIRES: b.mu held.
func (b *Book) admit(r *node.Request, more int) error {
	for i := range r.Spec.Notify {
		if err := b.cfg.check(r.Spec.Notify[i].URL); err != nil {
			return fmt.Errorf("notify.%d.url: %w", i, err)
		}
	}
	switch n := int(b.open.Of(r.User)) + more; {
	case int(b.open.Sum())+more >= maxOpen:
		return fmt.Errorf("%w: %d jobs of this site wait for their notices (at most %d): try again when some are sent, or submit without notify",
			node.ErrFull, b.open.Sum(), maxOpen)
	case r.User != "" && n >= maxOpen/partsOpen:
		return fmt.Errorf("%w: %d jobs of user %s wait for their notices (at most %d): try again when some are sent, or submit without notify",
			node.ErrFull, n, r.User, maxOpen/partsOpen)
	}
	return nil
}

// Keep takes what the core has recorded of a job that was accepted.
func (b *Book) Keep(num uint64, n node.Notices) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[num] == nil {
		b.add(num, &n)
	}
}

// Find returns what is to be sent of a job, and what became of it.
func (b *Book) Find(num uint64) (node.Notices, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.jobs[num]
	if n == nil {
		return node.Notices{}, false
	}
	return n.Clone(), true
}

// Has reports whether a job's end is to be told.
func (b *Book) Has(num uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.jobs[num]
	return n != nil && n.EndedMs == 0
}

// Unended returns the jobs of which it is not known that they have ended.
func (b *Book) Unended() (nums []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for num, n := range b.jobs {
		if n.EndedMs == 0 {
			nums = append(nums, num)
		}
	}
	slices.Sort(nums)
	return nums
}

// Figures returns what is counted since the start.
func (b *Book) Figures(now time.Time) node.NoticeFigures {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.figures
	for _, n := range b.jobs {
		if n.EndedMs != 0 && n.Open() {
			f.OldestMs = max(f.OldestMs, now.UnixMilli()-n.EndedMs)
		}
	}
	return f
}

// end notes that jobs have ended, durably, and returns what is to be sent.
func (b *Book) end(source string, list []node.Job, now time.Time) (out []ref, err error) {
	b.order.Lock()
	defer b.order.Unlock()
	made := map[uint64]*node.Notices{}
	var writes []record.Write
	for i := range list {
		num := list[i].ID.Num
		n, known := b.Find(num)
		if !known || n.EndedMs != 0 || made[num] != nil {
			continue
		}
		made[num] = endedBy(n, source, &list[i], now)
		writes = append(writes, b.write(num, made[num]))
	}
	if len(writes) == 0 {
		return nil, nil
	}
	if err = b.journal.Commit(writes); err != nil {
		return nil, fmt.Errorf("record that notices are due: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for num, n := range made {
		out = append(out, b.ended(num, n)...)
	}
	return out, nil
}

// endedBy returns the record of a job that has ended.
func endedBy(n node.Notices, source string, j *node.Job, now time.Time) *node.Notices {
	n.EndedMs, n.Event = now.UnixMilli(), eventOf(source, j, now)
	for k := range n.List {
		if !n.List[k].Wants(j.State) {
			n.List[k].State = node.NoticeUnwanted
		}
	}
	return &n
}

// ended takes a record of a job that has just ended. REQUIRES: b.mu held.
func (b *Book) ended(num uint64, n *node.Notices) (out []ref) {
	b.jobs[num] = n
	b.figures.Waiting += waiting(n)
	if !n.Open() {
		b.finish(num, n)
	}
	for at := range n.List {
		if n.List[at].State == node.NoticeWaiting {
			out = append(out, ref{num, at})
		}
	}
	return out
}

// write returns the write of a record; nothing that it holds may change before it is made.
func (b *Book) write(num uint64, n *node.Notices) record.Write {
	c := n.Clone()
	if !c.Open() {
		c.Event = nil // it is sent no more
	}
	return record.PutRecord(record.BucketNotices, record.Number(num), c)
}

// finish moves a job to those that are over. REQUIRES: b.mu held.
func (b *Book) finish(num uint64, n *node.Notices) {
	n.Event = nil
	b.open.Add(n.User, 1, -1)
	b.over = append(b.over, num)
}

// due returns all that is to be sent of ended jobs, with the moment for each, for a start.
func (b *Book) due() (out []dueNotice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for num, n := range b.jobs {
		for at := range n.List {
			if n.EndedMs != 0 && n.List[at].State == node.NoticeWaiting {
				out = append(out, dueNotice{ref{num, at}, n.List[at].NextMs})
			}
		}
	}
	return out
}

// settle notes the outcome of an attempt, durably, and returns when the next one is, in unix milliseconds; 0: none.
func (b *Book) settle(r ref, o outcome, now time.Time) (again int64, err error) {
	b.order.Lock()
	defer b.order.Unlock()
	b.mu.Lock()
	again, writes := b.note(r, o, true, now)
	b.mu.Unlock()
	return again, b.commit(writes)
}

// abandon gives notices up without another attempt, durably.
func (b *Book) abandon(list []ref, now time.Time) error {
	b.order.Lock()
	defer b.order.Unlock()
	var writes []record.Write
	b.mu.Lock()
	for _, r := range list {
		_, more := b.note(r, outcome{gone: true}, false, now)
		writes = append(writes, more...)
	}
	b.mu.Unlock()
	return b.commit(writes)
}

func (b *Book) commit(writes []record.Write) error {
	if err := b.journal.Commit(writes); err != nil {
		return fmt.Errorf("record what became of notices: %w", err)
	}
	return nil
}

// note takes the outcome of a notice; tried is false if there was no attempt. REQUIRES: b.order and b.mu held.
func (b *Book) note(r ref, o outcome, tried bool, now time.Time) (again int64, writes []record.Write) {
	n := b.jobs[r.num]
	if n == nil {
		return 0, nil
	}
	x := &n.List[r.at]
	if tried {
		x.Attempts++
		x.LastMs, x.Outcome = now.UnixMilli(), o.text
	}
	x.State, x.NextMs = b.cfg.after(n, x, o, now)
	b.count(x, o, tried)
	writes = append(writes, b.write(r.num, n))
	if !n.Open() {
		b.finish(r.num, n)
	}
	return x.NextMs, append(writes, b.forget()...)
}

// after returns what an outcome makes of a notice.
func (c *Config) after(n *node.Notices, x *node.Notice, o outcome, now time.Time) (node.NoticeState, int64) {
	switch next := now.Add(c.pauseAfter(x.Attempts, byte(n.EndedMs))); {
	case o.sent:
		return node.NoticeSent, 0
	case o.gone, next.UnixMilli() > n.EndedMs+c.GiveUp.Milliseconds():
		return node.NoticeGivenUp, 0
	default:
		return node.NoticeWaiting, next.UnixMilli()
	}
}

// count counts an outcome. REQUIRES: b.mu held.
func (b *Book) count(x *node.Notice, o outcome, tried bool) {
	if o.sent {
		b.figures.Sent++
	} else if tried {
		b.figures.Failed++
	}
	if x.State == node.NoticeGivenUp {
		b.figures.GivenUp++
	}
	if x.State != node.NoticeWaiting {
		b.figures.Waiting--
	}
}

// forget drops the oldest of what is over. REQUIRES: b.mu held.
func (b *Book) forget() (writes []record.Write) {
	for len(b.over) > maxDone {
		num := b.over[0]
		b.over = b.over[1:]
		delete(b.jobs, num)
		writes = append(writes, record.Tidy(record.BucketNotices, record.Number(num)))
	}
	return writes
}

// overdue reports whether a notice's time is over.
func (b *Book) overdue(r ref, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.jobs[r.num]
	return n == nil || now.UnixMilli() > n.EndedMs+b.cfg.GiveUp.Milliseconds()
}
