package command

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Format is the first byte of every batch. A change of what follows it takes a new number.
const Format = 8

// The encoding is positional: a batch is
//
//	Format, term, elapsed, number of commands, command…, number of bundles, bundle…
//
// where a bundle is the site, the number of its commands and the signature; and a command is the length of what
// follows, then
//
//	kind, site, incarnation, seq, ack, body
//
// Integers are varints in the fewest bytes, those that may be negative in zigzag form; strings, bytes
// and lists are preceded by their length; booleans are 0 or 1; uuids have no length. So each value has
// exactly one encoding, and equal entries are equal bytes on every backend.
//
// The encoding is positional and not of protobuf messages because a member must never act on part of a
// command: there are no optional fields to skip. The content of a kind, and the bounds of what is read of
// it, change by a new kind or a new Format, both guarded by a raised apply version: until it is in force
// nobody executes them, and then a member that does not know it stops.

// Append appends the batch's encoding to dst. An Elapsed below 0 is written as 0.
func (b *Batch) Append(dst []byte) []byte {
	dst = appendHeader(dst, b.Term, b.Elapsed, len(b.Commands))
	for i := range b.Commands {
		dst = Append(dst, b.Commands[i])
	}
	return appendBundles(dst, b.Bundles)
}

// AppendBatch appends the encoding of a batch whose commands have already been encoded by Append. No bundles: they are
// not signed.
func AppendBatch(dst []byte, term uint64, elapsed int64, commands [][]byte, bundles []Bundle) []byte {
	dst = appendHeader(dst, term, elapsed, len(commands))
	for _, c := range commands {
		dst = append(dst, c...)
	}
	return appendBundles(dst, bundles)
}

// Append appends the command's encoding to dst.
//
// REQUIRES: c.Validate() = nil; otherwise Decode may refuse it.
func Append(dst []byte, c Command) []byte {
	start := len(dst)
	dst = append(dst, 0) // the length, which usually takes one byte
	dst = append(dst, byte(c.Body.Kind()))
	dst = appendString(dst, c.ID.Site)
	dst = protowire.AppendVarint(dst, c.ID.Incarnation)
	dst = protowire.AppendVarint(dst, c.ID.Seq)
	dst = protowire.AppendVarint(dst, c.Ack)
	dst = appendBody(dst, c.Body)
	return setLength(dst, start)
}

// setLength writes the length of dst[start+1:] at start, and moves that part if the length takes more
// than the one byte that was reserved.
func setLength(dst []byte, start int) []byte {
	n := len(dst) - start - 1
	if size := protowire.SizeVarint(uint64(n)); size > 1 {
		var room [9]byte
		dst = append(dst, room[:size-1]...)
		copy(dst[start+size:], dst[start+1:start+1+n])
	}
	protowire.AppendVarint(dst[:start], uint64(n))
	return dst
}

func appendHeader(dst []byte, term uint64, elapsed int64, commands int) []byte {
	dst = append(dst, Format)
	dst = protowire.AppendVarint(dst, term)
	dst = appendInt(dst, max(elapsed, 0))
	return appendLen(dst, commands)
}

func appendBody(dst []byte, body Body) []byte {
	switch b := body.(type) {
	case *Genesis:
		dst = append(dst, b.Federation[:]...)
		dst = appendInt(dst, b.CreatedMs)
		dst = protowire.AppendVarint(dst, b.Seed)
		dst = appendParams(dst, &b.Params)
		if b.Founder != (signature.Key{}) {
			dst = append(dst, b.Founder[:]...)
		}
		return dst
	case *Register:
		return appendRegister(dst, b)
	case *Submit:
		return appendSubmit(dst, b)
	case *Offer:
		return appendOffer(dst, b)
	case *Started:
		return appendStarted(dst, b)
	case *Complete:
		return appendComplete(dst, b)
	case *Decline:
		return appendDecline(dst, b)
	case *Cancel:
		return appendString(appendSigned(appendJobID(dst, b.Job), b.Task), b.At)
	case *Renice:
		return appendRenice(dst, b)
	case *Orphans:
		return appendComplete(dst, (*Complete)(b))
	case *Close:
		return append(dst, byte(b.Why))
	case *Usage:
		return appendUsage(dst, b)
	case *SiteLost:
		dst = protowire.AppendVarint(appendString(dst, b.Site), b.Incarnation)
		return protowire.AppendVarint(dst, b.Term)
	case *Forget:
		return appendString(dst, b.Site)
	case *SetParams:
		return appendParams(dst, &b.Params)
	case *Suspect:
		dst = protowire.AppendVarint(appendString(dst, b.Site), b.Incarnation)
		return appendBool(dst, b.On)
	case *Addresses:
		return appendString(appendString(appendString(dst, b.HTTP), b.Peer), b.Gossip)
	case *Leave:
		return dst
	case *Lead:
		return protowire.AppendVarint(dst, b.Term)
	case *Bound:
		return appendBound(dst, b)
	case *Deliver:
		return appendDeliver(dst, b)
	case *Ahead:
		return appendInt(dst, b.IdleMs)
	case *HandBack:
		return appendString(appendAttempts(dst, b.Attempts), b.Reason)
	case *Release:
		return appendRelease(dst, b)
	case *Prioritize:
		return appendPrioritize(dst, b)
	case *Raise:
		return protowire.AppendVarint(dst, uint64(b.Version))
	case *Recover:
		return appendInt(protowire.AppendVarint(dst, b.Epoch), b.HoldMs)
	}
	return appendRosterBody(dst, body)
}
