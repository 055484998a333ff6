package history

import (
	"errors"
	"fmt"
	"io"
)

// Stream is the records of a Source in a row.
type Stream struct {
	// Notes say what was passed over, for people.
	Notes []string

	src    *Source
	next   int     // segment
	r      *Reader // of the segment before next; nil: none is open
	before int64   // bytes of the segments that were read
	end    *Record // of the segment, once it was read
	broken bool    // in the state of a segment that is not whole
}

// Stream returns the records from the first segment on.
func (s *Source) Stream() *Stream { return &Stream{src: s} }

// Name returns the file of the last record.
func (t *Stream) Name() string { return t.src.Segments[max(t.next, 1)-1].Name }

// Header returns that of the file of the last record.
func (t *Stream) Header() Header {
	if t.r == nil {
		return Header{}
	}
	return t.r.Header
}

// Done returns how many bytes were read, of Source.Size.
func (t *Stream) Done() int64 {
	if t.r == nil {
		return t.before
	}
	return t.before + t.r.At()
}

// Next returns the next record; one of KindEnd only where its file ends. Errors: io.EOF at the end of the source,
// ErrFormat, ErrTorn; each names the file; a Damage, behind which the next call goes on.
func (t *Stream) Next() (Record, error) {
	for {
		if t.r == nil {
			if err := t.open(); err != nil {
				return Record{}, err
			}
		}
		rec, err := t.r.Next()
		switch {
		case err == nil && t.end != nil:
			return rec, t.behindEnd(&rec)
		case err == nil && t.passes(rec.Kind):
			continue
		case err == nil:
			if rec.Kind == KindEnd {
				t.end = &rec
			}
			return rec, nil
		case t.readsOn(err):
			d := t.r.resync()
			d.File, d.Exported = t.Name(), t.r.Header.Whole
			if errors.Is(err, ErrDamaged) || d.To < t.r.size {
				return rec, d
			}
		}
		if err = t.close(err); err != nil {
			return rec, fmt.Errorf("%s: %w", t.Name(), err)
		}
	}
}

// readsOn reports whether whole records may stand behind what could not be read. Half a record at the end of a segment
// that is not the newest may be one whose length is damaged; in the newest one its broker may be writing it.
func (t *Stream) readsOn(err error) bool {
	torn := errors.Is(err, ErrTorn) && !t.r.Header.Whole && t.next < len(t.src.Segments)
	return torn || errors.Is(err, ErrDamaged)
}

// passes reports whether a record is of a state that is not whole, and so of no use.
func (t *Stream) passes(k Kind) bool {
	t.broken = t.broken && (k == KindState || k == KindBegun)
	return t.broken
}

// behindEnd goes beyond what stands behind a segment's end.
func (t *Stream) behindEnd(rec *Record) error {
	d := &Damage{
		File: t.Name(), Exported: t.r.Header.Whole, From: rec.At, To: t.src.Segments[t.next-1].Size, Exact: true,
		what: ": it stands behind the end",
	}
	t.skip()
	return d
}

// open goes on to the next segment.
func (t *Stream) open() (err error) {
	if t.next == len(t.src.Segments) {
		return io.EOF
	}
	t.next++
	t.end = nil
	t.broken = t.src.Segments[t.next-1].broken
	t.r, err = t.src.Segments[t.next-1].Records()
	return err
}

// skip goes on to the next segment.
func (t *Stream) skip() {
	t.before += t.src.Segments[t.next-1].Size
	t.r = nil
}

// close ends a segment at what Next of its reader has returned. A broker's own may end anywhere, since it may be
// writing there; an exported one has an end.
func (t *Stream) close(err error) error {
	whole, torn := t.r.Header.Whole, errors.Is(err, ErrTorn)
	switch {
	case !errors.Is(err, io.EOF) && !torn:
		return err
	case whole && torn:
		return fmt.Errorf("%w: it was cut: copy it again from where it was exported", err)
	case whole && t.end == nil:
		return fmt.Errorf("byte %d: %w: it has no end: copy it again from where it was exported", t.r.At(), ErrTorn)
	case torn:
		t.Notes = append(t.Notes, t.Name()+" ends within a record: its broker is writing it, or has crashed")
	}
	t.skip()
	return nil
}
