// Package reports tells the federation what became of the attempts that it assigned to this
// site (step 7): which run, and how they ended.
package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Book holds what is reported with this turn, or with the next tick.
type Book struct {
	out      *turn.Outbox
	attempts *attempts.Book
	started  []command.StartedAttempt // reported with the next tick
	ends     []command.Ended          // of this turn
	// namedLost are the attempts that the registration under way gives up.
	namedLost map[command.AttemptRef]bool
}

// NewBook returns a book with nothing to report.
func NewBook(out *turn.Outbox, a *attempts.Book) Book { return Book{out: out, attempts: a} }

// QueueStarted has the federation hear of a start with the next tick.
func (b *Book) QueueStarted(a *attempts.Attempt, at time.Time) {
	ref, err := b.attempts.Ref(a.ID)
	if err != nil {
		return // ids of attempts were made from references
	}
	b.started = append(b.started, command.StartedAttempt{
		AttemptRef: ref,
		DelayMs:    turn.Span(at.UnixMilli() - a.AssignedMs),
	})
}

// SendStarted tells the federation what runs; never waited for.
func (b *Book) SendStarted() {
	alive := b.started[:0]
	for _, st := range b.started {
		if a := b.attempts.Find(b.attempts.ID(st.AttemptRef)); a != nil && a.Ended == nil {
			alive = append(alive, st)
		}
	}
	for len(alive) > 0 {
		n := min(len(alive), turn.MaxReports)
		b.out.Add(&command.Started{Attempts: append([]command.StartedAttempt(nil), alive[:n]...)}, nil)
		alive = alive[n:]
	}
	b.started = b.started[:0]
}

// EndOf returns how the federation hears of an attempt's end, and whether that is certain:
// one with a bound whose handler lost it may still run, that is for the state to wait for.
func EndOf(ref command.AttemptRef, a *attempts.Attempt) (end command.Ended, certain bool) {
	r := a.Ended
	end = command.Ended{
		AttemptRef: ref, Outcome: attempts.Outcome(*r, a.Stopping),
		ExitCode: int32(r.ExitCode), Signal: int32(r.Signal),
		Ran: !r.Started.IsZero(), RunMs: turn.Span(r.Run.Milliseconds()), Detail: command.Clip(r.Detail),
		Output: a.Output, Measured: a.Measured(r.Usage),
	}
	if !r.Started.IsZero() {
		end.DelayMs = turn.Span(r.Started.UnixMilli() - a.AssignedMs)
	}
	return end, !a.Bounded || r.Cause != executor.Vanished
}

// QueueEnded has an end reported with this turn.
func (b *Book) QueueEnded(end command.Ended) { b.ends = append(b.ends, end) }

// Ends returns how many ends this turn reports.
func (b *Book) Ends() int { return len(b.ends) }

// SendEnds proposes the outcomes of this turn. The broker and the handler keep each attempt
// until the state has its outcome; then SendEnds calls settled for it. version is the apply
// version in force.
func (b *Book) SendEnds(version uint32, settled func(executor.ID)) {
	orphans, rest := splitOrphans(b.ends, version)
	b.ends = b.ends[:0]
	b.send(rest, settled, func(ends []command.Ended) command.Body { return &command.Complete{Attempts: ends} })
	b.send(orphans, settled, func(ends []command.Ended) command.Body { return &command.Orphans{Attempts: ends} })
}

// splitOrphans returns what goes in a command of its own. Before the version that has it,
// an orphan is reported as stopped though nobody asked: that is charged, too, and counts as
// a loss.
func splitOrphans(ends []command.Ended, version uint32) (orphans, rest []command.Ended) {
	for _, e := range ends {
		switch {
		case e.Outcome != command.Orphaned:
			rest = append(rest, e)
		case version < command.OrphansVersion:
			e.Outcome = command.Stopped
			rest = append(rest, e)
		default:
			orphans = append(orphans, e)
		}
	}
	return orphans, rest
}

// send proposes ends, as many as fit into a command.
func (b *Book) send(all []command.Ended, settled func(executor.ID), as func([]command.Ended) command.Body) {
	for ends := range slices.Chunk(all, turn.MaxReports) {
		b.out.Add(as(ends), func(_ command.Result, _ turn.StateReader, fx *turn.Effects) {
			for _, e := range ends {
				id := b.attempts.ID(e.AttemptRef)
				settled(id)
				if a := b.attempts.Find(id); a != nil {
					b.attempts.Drop(a, fx)
				}
			}
		})
	}
}

// Clear forgets all reports: the registration settles what they are of.
func (b *Book) Clear() { b.ends, b.started = b.ends[:0], b.started[:0] }

// Registration names the federation's attempts here for a registration: those that the
// site still answers for, and those that it lost track of.
func (b *Book) Registration() (held, lost []command.AttemptRef) {
	lostIDs := map[command.AttemptRef]bool{}
	for _, e := range b.ends {
		lostIDs[e.AttemptRef] = e.Outcome == command.Lost
	}
	for id, a := range b.attempts.All() {
		if a.Home {
			continue
		}
		ref, err := b.attempts.Ref(id)
		if err != nil {
			continue // ids of attempts were made from references
		}
		if lostIDs[ref] {
			lost = append(lost, ref)
		} else {
			held = append(held, ref)
		}
	}
	b.namedLost = map[command.AttemptRef]bool{}
	for _, ref := range lost {
		b.namedLost[ref] = true
	}
	slices.SortFunc(held, CompareRefs)
	slices.SortFunc(lost, CompareRefs)
	return held, lost
}

// CompareRefs orders attempts.
func CompareRefs(a, b command.AttemptRef) int {
	return cmp.Or(cmp.Compare(a.Job.Site, b.Job.Site), cmp.Compare(a.Job.Num, b.Job.Num),
		cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Token, b.Token))
}

// DropNamedLost drops the attempts that the registration gave up. What was lost
// after it was named as held is reported like any other end.
func (b *Book) DropNamedLost(fx *turn.Effects) {
	kept := b.ends[:0]
	for _, e := range b.ends {
		a := b.attempts.Find(b.attempts.ID(e.AttemptRef))
		if a == nil || !b.namedLost[e.AttemptRef] {
			kept = append(kept, e)
			continue
		}
		b.attempts.Drop(a, fx)
	}
	b.ends = kept
}
