package history

import "fmt"

// Hole is what somebody who goes through entries knows of damage in front of those that come now. The zero value is
// none.
type Hole struct {
	open    bool   // no entry has come since
	inexact bool   // where one of the stretches ends was looked for
	adrift  bool   // an entry is missing: no state leads to those that come
	last    uint64 // entry before the damage, or the last one that has come since
}

// Add notes a stretch of damage.
func (h *Hole) Add(d *Damage) { h.open, h.inexact = true, h.inexact || !d.Exact }

// Open reports whether damage stands in front of what comes now.
func (h *Hole) Open() bool { return h.open }

// Adrift reports whether what comes can be gone through from the next state on only.
func (h *Hole) Adrift() bool { return h.adrift }

// Follows reports whether an entry is the one behind at, where whoever goes through them is; begun: there is a state.
// If some are missing because of the damage, from is the first. Where a record was looked for it may be part of an
// entry, and is not gone on with.
func (h *Hole) Follows(at uint64, begun bool, number uint64) (follows bool, from uint64) {
	if !h.open && !h.adrift {
		return true, 0
	}
	if begun && !h.adrift && !h.inexact && number <= at+1 {
		if number == at+1 {
			*h = Hole{}
		}
		return number == at+1, 0 // those before were gone through already
	}
	return false, h.lose(at, begun, number)
}

// Ends compares the number of the last entry of a segment, as its end says, or that of the next state, with the entries
// that came: from is the first one that is missing because of the damage, 0: none is.
func (h *Hole) Ends(at uint64, begun bool, number uint64) (from uint64) {
	if !h.open || !h.adrift && number <= at {
		return 0
	}
	return h.lose(at, begun, number+1)
}

// lose notes that no state leads to an entry, and returns the first one that is missing before it, or 0.
func (h *Hole) lose(at uint64, begun bool, number uint64) (from uint64) {
	if !h.adrift {
		h.last = at
	}
	if h.open && (begun || h.adrift) && number > h.last+1 {
		from = h.last + 1
	}
	h.open, h.adrift, h.last = false, true, max(h.last, number)
	return from
}

// Range words some entries in a row.
func Range(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("entry %d", from)
	}
	return fmt.Sprintf("entries %d to %d", from, to)
}
