// Package priorities has the priorities of this site's jobs changed where this site no longer decides: in the
// replicated state. What is wanted is recorded first, so that neither a restart nor a federation without a quorum
// forgets it, and the record goes once the state has the job so, or the job has ended.
//
//	Want ─record─▶ wish ──the state has the job──▶ due ──one Prioritize for all──▶ done, the record goes
//	                 └── the job is on its way there, with whatever priority: looked at again
//
// What waits at home, for other jobs or for its user's turn has its priority in its own book: the core sees to that.
package priorities

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

const (
	// MaxWishes bounds the jobs whose priority is to change and has not yet.
	MaxWishes = 200_000
	// maxWaiters bounds who waits for the change of one job.
	maxWaiters = 16
	// looksPerTurn of the wishes for jobs on their way are looked at in a turn.
	looksPerTurn = 200
	// pause, in nanoseconds, before what was refused as a whole is ordered again.
	pause = 1e9
	// forgetAfter is for how long nobody may know a job, in nanoseconds, before its wish is dropped.
	forgetAfter = 10e9
)

// Way says where a job is whose priority is to change.
type Way uint8

// The ways.
const (
	Published Way = iota // the state has it
	Sent                 // it is on its way there, with the priority of before
	Carried              // it is on its way there, and has the new one with it
)

// wish is a job that is to have another priority.
type wish struct {
	num      uint64
	priority int32
	// at is its place in Book.list; due: it is in Book.due.
	at  int
	due bool
	// carried: the job has it when it reaches the state.
	carried bool
	// missed is since when nobody knows the job, by Clock.Boot, 0 = somebody does.
	missed int64
	// replies are told once the state has it, or never will.
	replies []func(error)
}

// Book holds what priorities are wanted. One goroutine has it, the core's.
type Book struct {
	site   string
	now    *turn.Clock
	out    *turn.Outbox
	wishes map[uint64]*wish // Invariant: the journal has each
	// list are the wishes in any order, next the one to be looked at next; due are those that the state can take now,
	// and some that are none any more.
	list []*wish
	next int
	due  []*wish
	// sending: a command is being ordered. restUntil, by Clock.Boot, none is before.
	sending   bool
	restUntil int64
}

// NewBook returns the book of a site that wants nothing.
func NewBook(site string, now *turn.Clock, out *turn.Outbox) Book {
	return Book{site: site, now: now, out: out, wishes: map[uint64]*wish{}}
}

// Len returns how many jobs are to have another priority.
func (b *Book) Len() int { return len(b.wishes) }

// Wanted returns the priority that a job is to have, false if none is wanted but the one that it has.
func (b *Book) Wanted(num uint64) (priority int32, ok bool) {
	if w := b.wishes[num]; w != nil {
		return w.priority, true
	}
	return 0, false
}

// Want has a job get a priority. Reply is called once the state has it so, or the job has ended; nil = nobody waits.
// Errors: node.ErrFull.
func (b *Book) Want(num uint64, priority int32, way Way, reply func(error), fx *turn.Effects) error {
	w := b.wishes[num]
	switch {
	case w == nil && len(b.list) >= MaxWishes:
		return fmt.Errorf("%w: %d jobs of this site wait for another priority already: try again when there is a quorum",
			node.ErrFull, len(b.list))
	case w == nil:
		w = b.add(num)
	case reply != nil && len(w.replies) >= maxWaiters:
		return fmt.Errorf("%w: %d requests wait for a change of its priority already: try again when there is a quorum",
			node.ErrFull, len(w.replies))
	}
	if w.priority, w.carried = priority, way == Carried; reply != nil {
		w.replies = append(w.replies, reply)
	}
	fx.Writes = append(fx.Writes, record.Put(record.BucketPriorities, record.Number(num), encode(priority)))
	if way == Published {
		b.order(w)
	}
	return nil
}

func (b *Book) add(num uint64) *wish {
	w := &wish{num: num, at: len(b.list)}
	b.wishes[num] = w
	b.list = append(b.list, w)
	return w
}

// order has a wish go with the next command.
func (b *Book) order(w *wish) {
	if !w.due {
		w.due = true
		b.due = append(b.due, w)
	}
}

// Settle has ordered what the state can take: one command for all jobs, and no other until its outcome is known.
// Pending reports whether a job is on its way to the federation.
func (b *Book) Settle(s turn.StateReader, pending func(num uint64) bool, fx *turn.Effects) {
	if len(b.list) == 0 {
		b.due = nil
		return
	}
	b.look(s, pending, fx)
	if len(b.due) > 2*len(b.list) { // some of it waits no more
		b.due = slices.DeleteFunc(b.due, func(w *wish) bool { return b.wishes[w.num] != w })
	}
	if b.sending || len(b.due) == 0 || b.now.Boot < b.restUntil || s.Version() < command.GatesVersion {
		return
	}
	n := min(len(b.due), command.MaxReports)
	cmd := &command.Prioritize{}
	for _, w := range b.due[:n] {
		if w.due = false; b.wishes[w.num] == w {
			cmd.Jobs = append(cmd.Jobs, command.Priority{Num: w.num, Priority: w.priority})
		}
	}
	if b.due = b.due[n:]; len(cmd.Jobs) == 0 {
		return
	}
	b.sending = true
	b.out.Add(cmd, func(r command.Result, s turn.StateReader, fx *turn.Effects) { b.executed(cmd, r, s, fx) })
}

// look finds, in turns, the wishes for jobs that have reached the state, or never will.
func (b *Book) look(s turn.StateReader, pending func(num uint64) bool, fx *turn.Effects) {
	if b.sending {
		return // what is being ordered is not to be ordered twice
	}
	for n := min(looksPerTurn, len(b.list)); n > 0; n-- {
		if b.next >= len(b.list) {
			b.next = 0
		}
		w := b.list[b.next]
		b.next++
		if pending(w.num) {
			w.missed = 0
			continue
		}
		id := command.JobID{Site: b.site, Num: w.num}
		switch counts, known := s.TaskCounts(id); {
		case known && w.carried:
			b.drop(w, nil, fx)
		case known && !counts.JobState().Ended():
			w.missed = 0
			b.order(w)
		case known, s.Retired(id):
			b.drop(w, b.fails(w.num, node.ErrEnded), fx)
		case w.missed == 0:
			w.missed = b.now.Boot
		case b.now.Boot-w.missed >= forgetAfter:
			b.drop(w, b.fails(w.num, node.ErrNotFound), fx)
		}
	}
}

// executed takes note of what the state has of a command. A wish that has changed meanwhile is ordered again.
func (b *Book) executed(cmd *command.Prioritize, r command.Result, s turn.StateReader, fx *turn.Effects) {
	b.sending = false
	if r.Code != command.OK {
		b.restUntil = b.now.Boot + pause
	}
	for _, p := range cmd.Jobs {
		w := b.wishes[p.Num]
		switch {
		case w == nil:
		case r.Code != command.OK || w.priority != p.Priority:
			b.order(w)
		default:
			b.drop(w, b.outcome(p.Num, s), fx)
		}
	}
}

// outcome returns nil if a job that a command has named had not ended.
func (b *Book) outcome(num uint64, s turn.StateReader) error {
	counts, known := s.TaskCounts(command.JobID{Site: b.site, Num: num})
	if !known || counts.JobState().Ended() {
		return b.fails(num, node.ErrEnded)
	}
	return nil
}

func (b *Book) fails(num uint64, err error) error {
	return fmt.Errorf("change the priority of job %s: %w", command.JobID{Site: b.site, Num: num}, err)
}

// drop forgets a wish, and tells those who wait for it.
func (b *Book) drop(w *wish, err error, fx *turn.Effects) {
	delete(b.wishes, w.num)
	last := len(b.list) - 1
	b.list[w.at], b.list[last].at = b.list[last], w.at
	b.list[last], b.list = nil, b.list[:last]
	fx.Writes = append(fx.Writes, record.Tidy(record.BucketPriorities, record.Number(w.num)))
	for _, reply := range w.replies {
		fx.Replies = append(fx.Replies, func() { reply(err) })
	}
}

// Recover reads what an earlier run of the broker was to change.
func (b *Book) Recover(j record.Reader) error {
	return j.Each(record.BucketPriorities, func(k, v []byte) error {
		if len(k) != 8 || len(v) != 4 {
			return fmt.Errorf("priority of job %x: malformed", k)
		}
		priority := int32(binary.BigEndian.Uint32(v))
		if priority < -command.MaxPriority || priority > command.MaxPriority {
			return fmt.Errorf("priority of job %d: %d is out of bounds", record.DecodeNumber(k), priority)
		}
		b.add(record.DecodeNumber(k)).priority = priority
		return nil
	})
}

func encode(priority int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(priority)) }

// Check returns an error if the lists of the book are not those of its wishes. Tests ask after every turn.
func (b *Book) Check() error {
	if len(b.list) != len(b.wishes) {
		return fmt.Errorf("%d wishes are listed, %d are known", len(b.list), len(b.wishes))
	}
	for i, w := range b.list {
		if w.at != i || b.wishes[w.num] != w {
			return fmt.Errorf("wish %d is %+v, listed at %d", w.num, w, i)
		}
	}
	listed := map[*wish]bool{}
	for _, w := range b.due {
		if !w.due || listed[w] {
			return fmt.Errorf("wish %d is listed as due, and is not, or twice", w.num)
		}
		listed[w] = true
	}
	for _, w := range b.list {
		if w.due != listed[w] {
			return fmt.Errorf("wish %d is due: %t, and listed so: %t", w.num, w.due, listed[w])
		}
	}
	return nil
}
