// Package lend decides what a site lends: what its offer exposes now (step 4), and why it
// lends nothing, or starts nothing of its own users either: its operator drains it, it
// leaves, its disk is full, its state is unsure or its machines rest.
package lend

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Book is what a site lends, as the state was told last and as it is now.
type Book struct {
	out      *turn.Outbox
	machines *machines.Set
	offers
	closed closure
	drain  Drain
	// closing: the site offers nothing any more.
	closing bool
	// full says why this site has no room on its disk; nil: it has.
	full error
	// unsure says why the site must begin nothing for others; "": it may.
	unsure string
}

// offers keeps the last offer made.
type offers struct {
	count    uint64 // offers made in this incarnation
	last     []command.Machine
	lastHome command.Resources
	inflight bool
	spare    *command.Offer // one that nobody holds, to be filled again
	// owed: an assignment was declined for lack of room, without a new offer. The
	// state bars it from here until the next one, so one is made when the room
	// may be back, though it says nothing new.
	owed, repeat bool
}

// NewBook returns the book of a site that has offered nothing.
func NewBook(out *turn.Outbox, m *machines.Set) Book { return Book{out: out, machines: m} }

// SetFull says why the disk has no room, nil: it has.
func (b *Book) SetFull(full error) { b.full = full }

// Full returns why the disk has no room, or nil.
func (b *Book) Full() error { return b.full }

// SetUnsure says why the site must begin nothing for others, "": it may.
func (b *Book) SetUnsure(why string) { b.unsure = why }

// Unsure returns why the site must begin nothing for others, or "".
func (b *Book) Unsure() string { return b.unsure }

// Close has the site offer nothing any more.
func (b *Book) Close() { b.closing = true }
