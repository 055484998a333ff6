package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cloudshare/cloudshare/node/replica"
)

// Export is what is written for a third party, or was.
type Export struct {
	// From is an entry that is to be in it, with those behind it: it begins with the newest state before it. To is the
	// last entry. 0 = as far as there is.
	From, To uint64
	Header   Header
	// Progress is told how many bytes of the source were read; nil: nobody is.
	Progress func(done int64)

	// What was written: entries behind First up to Last, and what was signed of them.
	First, Last         uint64
	Entries, Statements int
	Notes               []string // what was passed over, for people

	out     *bufio.Writer
	begins  []uint64 // by segment: the entry of its first state
	segment int      // of begins, counted from 1; 0 = none
	number  uint64   // entry of the state that comes next, as far as that is known
	begun   bool
	at      place
	inState bool   // the last record was of a state
	skipped bool   // that one is of at or before it, and what leads there was written
	passing *place // in entries that were written before; nil: not in some
	past    bool   // an entry behind To has come
	holed   Hole   // damage in front of what is read now
}

// ErrRange reports that nothing of what is asked for is kept.
var ErrRange = errors.New("these entries are not kept")

// Write writes what a broker has of the range. Errors: ErrRange, those of Stream.Next and of the writer.
func (x *Export) Write(src *Source, to io.Writer) error {
	part, err := x.choose(src)
	if err != nil {
		return err
	}
	x.Header.Whole = true
	head, err := appendHeader(x.Header)
	if err != nil {
		return err
	}
	x.out = bufio.NewWriterSize(to, 256<<10)
	_, _ = x.out.Write(head) // Flush tells
	if err = x.copy(part.Stream()); err != nil {
		return err
	}
	if x.Last = x.at.entry; !x.begun || x.Last < x.From || x.Entries == 0 {
		return fmt.Errorf("%w: what is kept ends with entry %d", ErrRange, x.Last)
	}
	x.put(KindEnd, binary.AppendUvarint(nil, x.at.entry), x.at.chain[:])
	return x.out.Flush()
}

// choose returns the segments of the range: from the one with the newest state before it, to the last one that begins
// in it.
func (x *Export) choose(src *Source) (*Source, error) {
	part := &Source{}
	for i := range src.Segments {
		s := &src.Segments[i]
		n, begun, err := s.begun()
		switch {
		case s.broken: // of use where the entries before lead there
			part.Segments, x.begins = append(part.Segments, *s), append(x.begins, 0)
			continue
		case err != nil:
			return nil, err
		case !begun:
			continue
		case n < x.From:
			part.Segments, x.begins = nil, nil
		case x.To != 0 && n >= x.To:
			return part, nil
		}
		part.Segments, x.begins = append(part.Segments, *s), append(x.begins, n)
	}
	return part, nil
}

// copy writes what is of the range.
func (x *Export) copy(t *Stream) error {
	for {
		rec, err := t.Next()
		d := Passable(err)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case d != nil:
			x.passing = nil
			x.holed.Add(d)
			x.note(d.Error())
			continue
		case err == nil:
			if x.segment != t.next {
				x.segment, x.number = t.next, x.begins[t.next-1]
			}
			err = x.take(&rec)
		}
		if err != nil {
			return err
		}
		if x.Progress != nil {
			x.Progress(t.Done())
		}
	}
}

// put writes a record.
func (x *Export) put(k Kind, parts ...[]byte) { _, _ = x.out.Write(appendRecord(nil, k, parts...)) } // Flush tells

// take writes a record, if it is of the range.
func (x *Export) take(rec *Record) error {
	begins := rec.Kind == KindState && !x.inState
	x.inState = rec.Kind == KindState
	switch rec.Kind {
	case KindState:
		return x.takeState(rec.Contents, begins)
	case KindBegun:
		return x.takeBegun(rec.Number)
	case KindEntry:
		return x.takeEntry(rec)
	case KindStatement:
		_, s, err := ParseStatement(rec.Contents)
		// One that stands behind To may be by a key that its site has only since then.
		if err != nil || x.past || x.To != 0 && s.Entry > x.To {
			return err
		}
		x.put(KindStatement, rec.Contents)
		x.Statements++
	case KindEnd:
		x.noteMissing(x.holed.Ends(x.at.entry, x.begun, rec.Number), rec.Number)
	}
	return nil
}

// maxNotes bounds what people are told of damage.
const maxNotes = 64

func (x *Export) note(text string) {
	if len(x.Notes) < maxNotes {
		x.Notes = append(x.Notes, text)
	}
}

// noteMissing tells which entries are missing because of damage; from 0: none.
func (x *Export) noteMissing(from, to uint64) {
	if from != 0 {
		x.note("missing: " + Range(from, to) + "; no state leads to those behind: a gap up to the next one")
	}
}

// takeState writes a state, unless the entries before lead to it, or beyond it: it stands here so that each segment can
// be gone through by itself.
func (x *Export) takeState(part []byte, begins bool) error {
	if begins {
		chain, err := replica.ReadChain(bytes.NewReader(part))
		if err != nil {
			return err
		}
		x.passing = nil
		switch {
		case x.begun && chain == x.at.chain:
			x.skipped = true
		case x.begun && x.number < x.at.entry:
			x.skipped, x.passing = true, &place{x.number, chain}
		default:
			x.skipped, x.at.chain = false, chain
		}
	}
	if !x.skipped {
		x.put(KindState, part)
	}
	return nil
}

// errBackwards reports a state of before the entries in front of it.
var errBackwards = errors.New("a state stands behind later entries: a history does not go backwards")

func (x *Export) takeBegun(number uint64) error {
	x.number = math.MaxUint64 // of another one in the same file
	x.noteMissing(x.holed.Ends(x.at.entry, x.begun, number), number)
	x.holed = Hole{}
	switch {
	case x.skipped:
		return nil
	case !x.begun:
		x.begun, x.First = true, number
	case number < x.at.entry:
		return fmt.Errorf("entry %d, behind %d: %w", number, x.at.entry, errBackwards)
	}
	x.at.entry = number
	x.put(KindBegun, binary.AppendUvarint(nil, number))
	return nil
}

func (x *Export) takeEntry(rec *Record) error {
	if follows, from := x.holed.Follows(x.at.entry, x.begun, rec.Number); !follows {
		x.noteMissing(from, rec.Number-1)
		return nil
	}
	sum := sha256.Sum256(rec.Contents)
	switch {
	case x.passing != nil:
		return x.pass(place{rec.Number, x.passing.chain.Next(sum)})
	case x.To != 0 && rec.Number > x.To:
		x.past = true
		return nil
	}
	x.put(KindEntry, binary.AppendUvarint(nil, rec.Number), rec.Contents)
	x.at = place{rec.Number, x.at.chain.Next(sum)}
	x.Entries++
	return nil
}

// errTwice reports entries that were ordered twice.
var errTwice = errors.New("what leads to it is kept twice, and differs")

// pass goes beyond an entry that was written before: it must be the same.
func (x *Export) pass(to place) error {
	switch {
	case to.entry < x.at.entry:
		x.passing = &to
		return nil
	case to != x.at:
		return fmt.Errorf("entry %d: %w: export what is behind it (--from %d)", x.at.entry, errTwice, x.at.entry+1)
	}
	x.passing = nil
	return nil
}
