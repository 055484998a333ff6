// Package ahead keeps what is assigned to this site ahead: it begins as soon as what runs before it on its machine has
// ended, without a word to or from the federation. It also measures how long machines idle without that, which is what
// the federation goes by (fsm/DESIGN.md, Tasks ahead).
package ahead

import (
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Held is an assignment that waits at this site for its machine.
type Held struct {
	ID   executor.ID
	Ref  command.AttemptRef
	Need command.Resources
	// Boot and WallMs are when this broker saw it first: CLOCK_BOOTTIME, and unix milliseconds.
	Boot, WallMs int64
}

// Book holds the assignments ahead. None of them is in the journal: to a later life of the broker each is an assignment
// that has not begun, like any other.
type Book struct {
	Idle
	now *turn.Clock
	// queues are the assignments by machine, the next one first. Invariant: none is empty.
	queues map[string][]Held
	// at says in which of the queues an assignment is.
	at map[executor.ID]string
	// moved is when the last one of a queue began, by machine: CLOCK_BOOTTIME.
	moved map[string]int64
}

// NewBook returns a book without assignments; now is the moment of the turn.
func NewBook(out *turn.Outbox, now *turn.Clock) Book {
	return Book{
		Idle: Idle{out: out, now: now}, now: now, queues: map[string][]Held{}, at: map[executor.ID]string{},
		moved: map[string]int64{},
	}
}

// Hold has an assignment wait behind all others of its machine, unless it does already.
func (b *Book) Hold(id executor.ID, ref command.AttemptRef, machine string, need command.Resources) {
	if b.IsHeld(id) {
		return
	}
	b.at[id] = machine
	b.queues[machine] = append(b.queues[machine], Held{id, ref, need, b.now.Boot, b.now.Wall.UnixMilli()})
}

// IsHeld reports whether an assignment waits here.
func (b *Book) IsHeld(id executor.ID) bool { _, held := b.at[id]; return held }

// IsBehind reports whether an assignment has to wait for others of its machine: its own place in the queue says so, or
// if it has none, that there is a queue.
func (b *Book) IsBehind(id executor.ID, machine string) bool {
	q := b.queues[machine]
	return len(q) > 0 && q[0].ID != id
}

// Of returns what waits for a machine, the next one first, and what all of it needs. The caller must not change it.
func (b *Book) Of(machine string) (queue []Held, need command.Resources) {
	queue = b.queues[machine]
	for i := range queue {
		need = need.Plus(queue[i].Need)
	}
	return queue, need
}

// Since returns when this broker saw a held assignment first, in unix milliseconds; 0: it is not held.
func (b *Book) Since(id executor.ID) int64 {
	q := b.queues[b.at[id]]
	if i := find(q, id); i >= 0 {
		return q[i].WallMs
	}
	return 0
}

// Drop forgets an assignment, if it is held: it began, or is not to begin here.
func (b *Book) Drop(id executor.ID) {
	machine, held := b.at[id]
	if !held {
		return
	}
	delete(b.at, id)
	q := b.queues[machine]
	q = slices.Delete(q, find(q, id), find(q, id)+1)
	if b.queues[machine] = q; len(q) == 0 {
		delete(b.queues, machine)
		delete(b.moved, machine)
	}
}

// Begin drops an assignment that begins now, if it was held.
func (b *Book) Begin(id executor.ID) {
	if machine, held := b.at[id]; held {
		b.moved[machine] = b.now.Boot
		b.Drop(id)
	}
}

// Stands returns for how long nothing of a machine's queue has begun while an assignment in it waited, in nanoseconds.
func (b *Book) Stands(machine string, h Held) int64 {
	return b.now.Boot - max(h.Boot, b.moved[machine])
}

func find(q []Held, id executor.ID) int {
	return slices.IndexFunc(q, func(h Held) bool { return h.ID == id })
}

// Keep drops what is not assigned here any more.
func (b *Book) Keep(assigned map[executor.ID]bool) {
	for _, id := range slices.Collect(maps.Keys(b.at)) {
		if !assigned[id] {
			b.Drop(id)
		}
	}
}

// Machines returns the machines for which something waits, by name.
func (b *Book) Machines() []string { return slices.Sorted(maps.Keys(b.queues)) }

// Clear forgets everything: the site is registered again, and is assigned what it does not name.
func (b *Book) Clear() {
	clear(b.queues)
	clear(b.at)
	clear(b.moved)
	b.forget()
}
