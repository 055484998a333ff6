package lend

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Offer proposes a new offer when what is exposed changed (step 4). One is
// under way at a time: a burst of home starts costs two entries, not many.
func (b *Book) Offer(incarnation uint64) {
	if b.inflight {
		return
	}
	o := b.exposed()
	if !b.changed(o) {
		b.spare = o
		return
	}
	b.stamp(o, incarnation)
	b.inflight = true
	b.out.Add(o, func(command.Result, turn.StateReader, *turn.Effects) { b.inflight = false })
}

// changed reports whether an offer says anything new.
func (b *Book) changed(o *command.Offer) bool {
	return b.count == 0 || b.repeat || o.Home != b.lastHome || !slices.Equal(o.Machines, b.last)
}

// stamp gives an offer the next version. Versions grow over all incarnations.
func (b *Book) stamp(o *command.Offer, incarnation uint64) {
	b.count++
	b.last, b.lastHome = o.Machines, o.Home
	b.owed, b.repeat = false, false
	o.Version = incarnation<<32 | b.count
}

// exposed returns what this site would offer now.
func (b *Book) exposed() *command.Offer {
	o := b.spare
	if b.spare = nil; o == nil {
		o = &command.Offer{}
	}
	b.machines.Expose(o, b.closing || b.drain.On || b.full != nil || b.unsure != "")
	return o
}

// Replacement returns a new offer to go with a decline, nil if what is exposed has not
// changed: a new offer lifts the bars of all that was declined before. soon: the room may
// be back soon.
func (b *Book) Replacement(incarnation uint64, soon bool) (replacement *command.Offer) {
	if o := b.exposed(); b.changed(o) {
		b.stamp(o, incarnation)
		replacement = o
	} else {
		b.spare = o
	}
	b.owed = b.owed || soon
	return replacement
}

// Owe has a new offer made with the next RepeatOwed, though it says nothing new: it lifts the bars of what was
// declined.
func (b *Book) Owe() { b.owed = true }

// RepeatOwed has a new offer made for assignments that were declined for lack of room.
func (b *Book) RepeatOwed() { b.repeat = b.owed }

// Expelled forgets what an incarnation that is lost has offered and said.
func (b *Book) Expelled() { b.offers, b.closed = offers{}, closure{} }

// Withdrawn reports whether the order has taken the last offer, of nothing.
func (b *Book) Withdrawn() bool { return len(b.last) == 0 && !b.inflight }
