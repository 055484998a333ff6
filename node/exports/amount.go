package exports

import (
	"fmt"

	"github.com/cloudshare/cloudshare/node"
)

// What is held. Of each half, of what has ended and of what has not, one user has a part of partsOfUser at most.
const (
	// MaxOpen is how many jobs that have not ended may have something attached, and maxDone how many of those that have
	// are remembered: the oldest are forgotten first.
	MaxOpen = 100_000
	maxDone = 100_000
	// partsOfUser is of which parts one user has one at most.
	partsOfUser = 4
	// MaxBytes bounds what is in the journal, documents and ends together: half of it is for what has ended.
	MaxBytes = 1 << 30
	// maxIndex bounds what is in memory, in bytes, as amountOf counts it; half of it likewise.
	maxIndex = 256 << 20
	// MaxDocument bounds what is attached to one job, in bytes, and maxEnd about what its end is in the journal.
	MaxDocument = 12 << 20
	maxEnd      = 8 << 20
)

// Memory of one job, tag, export and end besides their texts, in bytes.
const (
	jobBytes    = 400
	tagBytes    = 64
	exportBytes = 128
	endBytes    = 300
)

// amount is how much is kept.
type amount struct {
	jobs  int
	bytes int64 // in the journal
	index int64 // in memory
}

// mostOpen and mostDone are of all users together.
var (
	mostOpen = amount{MaxOpen, MaxBytes / 2, maxIndex / 2}
	mostDone = amount{maxDone, MaxBytes / 2, maxIndex / 2}
)

// Plus implements tally.Amount.
func (a amount) Plus(b amount, sign int) amount {
	return amount{a.jobs + sign*b.jobs, a.bytes + int64(sign)*b.bytes, a.index + int64(sign)*b.index}
}

// within reports whether there is no more of anything than of most.
func (a amount) within(most amount) bool {
	return a.jobs <= most.jobs && a.bytes <= most.bytes && a.index <= most.index
}

// part returns one of so many equal parts.
func (a amount) part(of int) amount {
	return amount{a.jobs / of, a.bytes / int64(of), a.index / int64(of)}
}

// lessOne returns what is left without a part: who forgets at a bound forgets down to that, and not each time.
func (a amount) lessOne(of int) amount { return a.Plus(a.part(of), -1) }

// String is for people.
func (a amount) String() string {
	return fmt.Sprintf("%d with %d bytes of documents and %d of names, tags and places", a.jobs, a.bytes, a.index)
}

// amountOf returns what a job takes that has not ended, whose document has so many bytes.
func amountOf(a *node.Attached, document int) amount {
	index := jobBytes + len(a.User) + len(a.Name)
	for key, value := range a.Tags {
		index += tagBytes + len(key) + len(value)
	}
	for i := range a.Exports {
		x := &a.Exports[i]
		index += exportBytes + len(x.From) + len(x.Match) + len(x.Root) + len(x.To)
	}
	return amount{1, int64(document), int64(index)}
}

// amountOfEnd returns what its end takes besides, which has so many bytes in the journal.
func amountOfEnd(end *node.AttachedEnd, text int) amount {
	return amount{0, int64(text), int64(endBytes + len(end.Reason) + len(end.Why))}
}
