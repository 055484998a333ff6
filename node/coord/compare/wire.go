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
//	→ frame: questionHashes          ← frame: site · format · n × (entry · hash)
//	→ frame: questionState           ← frame: site · entry, then the state's snapshot in
//	                                   frames of chunkBytes at most, and an empty one
//
// A member that has no time for a state now closes the connection.
const (
	questionHashes = 1
	questionState  = 2
)

// Bounds of the frames, in bytes.
const (
	maxQuestion = 16
	maxHashes   = 8 << 10
	maxHead     = 256
	chunkBytes  = 64 << 10
)

// maxFormat bounds the name of a hash format, in bytes.
const maxFormat = 64

var errAnswer = errors.New("malformed answer")

// answer is what a member says of its hashes.
type answer struct {
	site, format string
	points       []coord.Checkpoint
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func (a *answer) append(dst []byte) []byte {
	dst = appendText(appendText(dst, a.site), a.format)
	dst = binary.AppendUvarint(dst, uint64(len(a.points)))
	for _, p := range a.points {
		dst = append(binary.AppendUvarint(dst, p.Entry), p.Hash[:]...)
	}
	return dst
}

// parseAnswer reads what append wrote.
func parseAnswer(b []byte) (answer, error) {
	d := relay.NewDecoder(b)
	a := answer{site: string(d.Bytes(63)), format: string(d.Bytes(maxFormat))}
	for range d.Count(coord.MaxCheckpoints, 33) {
		p := coord.Checkpoint{Entry: d.Uvarint()}
		for i := range p.Hash {
			p.Hash[i] = d.Byte()
		}
		a.points = append(a.points, p)
	}
	if !d.Done() {
		return answer{}, fmt.Errorf("%w: %d bytes", errAnswer, len(b))
	}
	return a, nil
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
