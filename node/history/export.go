package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

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

	out     *bufio.Writer
	begun   bool
	at      place
	inState bool // the last record was of a state
	skipped bool // that one is of at, and what leads there was written
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
		n, begun, err := src.Segments[i].begun()
		switch {
		case err != nil:
			return nil, err
		case !begun:
			continue
		case n < x.From:
			part.Segments = nil
		case x.To != 0 && n >= x.To:
			return part, nil
		}
		part.Segments = append(part.Segments, src.Segments[i])
	}
	return part, nil
}

// copy writes what is of the range.
func (x *Export) copy(t *Stream) error {
	for {
		rec, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
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
		x.takeBegun(rec.Number)
	case KindEntry:
		x.takeEntry(rec)
	case KindStatement:
		_, s, err := ParseStatement(rec.Contents)
		if err != nil || x.To != 0 && s.Entry > x.To {
			return err
		}
		x.put(KindStatement, rec.Contents)
		x.Statements++
	case KindEnd:
	}
	return nil
}

// takeState writes a state, unless the entries before lead to it: it stands here so that each segment can be gone
// through by itself.
func (x *Export) takeState(part []byte, begins bool) error {
	if begins {
		chain, err := replica.ReadChain(bytes.NewReader(part))
		if err != nil {
			return err
		}
		x.skipped = x.begun && chain == x.at.chain
		x.at.chain = chain
	}
	if !x.skipped {
		x.put(KindState, part)
	}
	return nil
}

func (x *Export) takeBegun(number uint64) {
	if x.skipped {
		return
	}
	if !x.begun {
		x.begun, x.First = true, number
	}
	x.at.entry = number
	x.put(KindBegun, binary.AppendUvarint(nil, number))
}

func (x *Export) takeEntry(rec *Record) {
	if x.To != 0 && rec.Number > x.To {
		return
	}
	x.put(KindEntry, binary.AppendUvarint(nil, rec.Number), rec.Contents)
	x.at = place{rec.Number, x.at.chain.Next(sha256.Sum256(rec.Contents))}
	x.Entries++
}
