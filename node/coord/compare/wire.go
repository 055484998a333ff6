package compare

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A connection of relay.KindCompare has one question, and what answers it:
//
//	→ frame: questionOwn             ← frame: n × statement of who answers
//	→ frame: questionHeard · entry   ← frame: n × statement of others, at that entry or later
//	→ frame: questionState           ← frame: site · entry, then the state's snapshot in
//	                                   frames of chunkBytes at most, and an empty one
//
// A statement is site · format · entry · hashed (0, 1) · chain · hash if hashed · signature.
// A member that has no time for a state now closes the connection.
const (
	questionState = 2 // 1 was of hashes alone
	questionOwn   = 3
	questionHeard = 4
)

// Bounds of the frames, in bytes, and of what stands in them.
const (
	maxQuestion  = 16
	maxStatement = 1 + 63 + 1 + maxFormat + 10 + 1 + 32 + 32 + 1 + 64
	maxOwn       = 2 + coord.MaxCheckpoints*maxStatement
	maxHeard     = 64 // statements
	maxHeardSize = 2 + maxHeard*maxStatement
	maxHead      = 256
	chunkBytes   = 64 << 10
)

// maxFormat bounds the name of a hash format, in bytes.
const maxFormat = 64

var errAnswer = errors.New("malformed answer")

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func (s *Statement) append(dst []byte) []byte {
	dst = binary.AppendUvarint(appendText(appendText(dst, s.Site), s.Format), s.Entry)
	if !s.Hashed {
		dst = append(append(dst, 0), s.Chain[:]...)
	} else {
		dst = append(append(append(dst, 1), s.Chain[:]...), s.Hash[:]...)
	}
	return appendText(dst, string(s.Signature))
}

// Append appends the statement as an answer has it.
func (s *Statement) Append(dst []byte) []byte { return s.append(dst) }

// ParseStatement reads what Append wrote, and nothing else.
func ParseStatement(b []byte) (Statement, error) {
	d := relay.NewDecoder(b)
	s, ok := parseStatement(&d)
	if !ok || !d.Done() {
		return Statement{}, fmt.Errorf("%w: %d bytes", errAnswer, len(b))
	}
	return s, nil
}

// parseStatement reads what append wrote; false for what it does not write.
func parseStatement(d *relay.Decoder) (s Statement, ok bool) {
	s.Site, s.Format, s.Entry = string(d.Bytes(63)), string(d.Bytes(maxFormat)), d.Uvarint()
	hashed := d.Byte()
	s.Hashed = hashed == 1
	for i := range s.Chain {
		s.Chain[i] = d.Byte()
	}
	for i := 0; s.Hashed && i < len(s.Hash); i++ {
		s.Hash[i] = d.Byte()
	}
	s.Signature = append([]byte(nil), d.Bytes(64)...)
	return s, hashed <= 1
}

// appendStatements writes an answer.
func appendStatements(dst []byte, list []Statement) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for i := range list {
		dst = list[i].append(dst)
	}
	return dst
}

// parseStatements reads an answer of at most so many.
func parseStatements(b []byte, most int) ([]Statement, error) {
	const least = 3 + 1 + 32 + 1
	d := relay.NewDecoder(b)
	var out []Statement
	for range d.Count(most, least) {
		s, ok := parseStatement(&d)
		if !ok {
			return nil, fmt.Errorf("%w: %d bytes", errAnswer, len(b))
		}
		out = append(out, s)
	}
	if !d.Done() {
		return nil, fmt.Errorf("%w: %d bytes", errAnswer, len(b))
	}
	return out, nil
}

// heardFrom reads the entry of questionHeard.
func heardFrom(q []byte) (from uint64, ok bool) {
	d := relay.NewDecoder(q[1:])
	from = d.Uvarint()
	return from, d.Done()
}

// head stands before a state.
type head struct {
	site  string
	entry uint64
}

func (h head) append(dst []byte) []byte {
	return binary.AppendUvarint(appendText(dst, h.site), h.entry)
}

// parseHead reads what append wrote.
func parseHead(b []byte) (head, error) {
	d := relay.NewDecoder(b)
	h := head{site: string(d.Bytes(63)), entry: d.Uvarint()}
	if !d.Done() {
		return head{}, fmt.Errorf("%w: %d bytes", errAnswer, len(b))
	}
	return h, nil
}
