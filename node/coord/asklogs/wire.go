package asklogs

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Bounds of a question and its answer.
const (
	// MaxAttempts are asked for at once.
	MaxAttempts = 1000
	maxQuestion = binary.MaxVarintLen64 * (2 + 3*MaxAttempts)
	// maxPiece bounds the bytes of a stream in one frame.
	maxPiece = 64 << 10
	maxFrame = 1 + 4*binary.MaxVarintLen64 + 2*maxPiece
)

// Forms of a frame of an answer.
const (
	formWhole   = 1
	formPiece   = 2
	formEnd     = 3
	formRefused = 4
)

var errWire = errors.New("malformed question for outputs, or answer")

// Refusal says why a site does not give an attempt's output. The numbers are those of the peer port.
type Refusal uint8

// The refusals.
const (
	Granted    Refusal = iota
	NotHere            // it did not run there, or its output was removed long ago
	Removed            // its output was removed
	Damaged            // its output is lost
	Unreadable         // it may be there; later that may be known
	Running            // it has not ended there; later it may have
)

var refusalNames = [...]string{
	"granted", "it is not there", "it was removed there", "it is damaged there", "it cannot be read there now",
	"it has not ended there",
}

// String says it to people.
func (r Refusal) String() string {
	if int(r) < len(refusalNames) {
		return refusalNames[r]
	}
	return fmt.Sprintf("refused for reason %d", uint8(r))
}

// Temporary reports whether the same question may be answered later. What this broker does not know is no such reason.
func (r Refusal) Temporary() bool { return r == Unreadable || r == Running }

// Ref names an attempt of a job of the site that asks.
type Ref struct {
	Num     uint64 // of the job
	Task    uint32 // its position
	Attempt uint32 // 0 = the newest that is there
}

// Question asks for the outputs of attempts.
type Question struct {
	Most int64 // bytes of each stream; what is beyond is left out
	Refs []Ref
}

func (q *Question) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(q.Most))
	dst = binary.AppendUvarint(dst, uint64(len(q.Refs)))
	for _, r := range q.Refs {
		dst = binary.AppendUvarint(dst, r.Num)
		dst = binary.AppendUvarint(dst, uint64(r.Task))
		dst = binary.AppendUvarint(dst, uint64(r.Attempt))
	}
	return dst
}

func parseQuestion(b []byte) (Question, error) {
	d := relay.NewDecoder(b)
	most := d.Uvarint()
	n := d.Count(MaxAttempts, 3)
	q := Question{Most: int64(most), Refs: make([]Ref, 0, n)}
	for range n {
		num, task, attempt := d.Uvarint(), d.Uvarint(), d.Uvarint()
		r := Ref{Num: num, Task: uint32(task), Attempt: uint32(attempt)}
		if uint64(r.Task) != task || uint64(r.Attempt) != attempt {
			return Question{}, fmt.Errorf("%w: task %d, attempt %d", errWire, task, attempt)
		}
		q.Refs = append(q.Refs, r)
	}
	if n == 0 || q.Most <= 0 || !d.Done() {
		return Question{}, fmt.Errorf("%w: a question of %d bytes", errWire, len(b))
	}
	return q, nil
}

// Done ends the answer about an attempt.
type Done struct {
	Refusal Refusal
	// Attempt and Token are what the site says, if it refuses nothing.
	Attempt uint32
	Token   uint64
}

// part is a frame of an answer.
type part struct {
	Done
	ends    bool
	streams [2][]byte
}

func appendWhole(dst []byte, d Done, streams [2][]byte) []byte {
	dst = appendDone(append(dst, formWhole), d)
	dst = binary.AppendUvarint(dst, uint64(len(streams[0])))
	return append(append(dst, streams[0]...), streams[1]...)
}

func appendPiece(dst []byte, stream int, b []byte) []byte {
	return append(append(dst, formPiece, byte(stream)), b...)
}

func appendEnd(dst []byte, d Done) []byte {
	if d.Refusal != Granted {
		return append(dst, formRefused, byte(d.Refusal))
	}
	return appendDone(append(dst, formEnd), d)
}

func appendDone(dst []byte, d Done) []byte {
	dst = binary.AppendUvarint(dst, uint64(d.Attempt))
	return binary.AppendUvarint(dst, d.Token)
}

// parsePart reads a frame of an answer. What it returns stands in b.
func parsePart(b []byte) (p part, err error) {
	d := relay.NewDecoder(b)
	form := d.Byte()
	switch form {
	case formWhole:
		p.ends, p.Done = true, parseDone(&d)
		if n := d.Uvarint(); n <= uint64(d.Left()) {
			p.streams[0] = d.Fixed(int(n))
			p.streams[1] = d.Fixed(d.Left())
			break
		}
		form = 0
	case formPiece:
		stream := d.Byte()
		if rest := d.Fixed(d.Left()); stream < 2 && len(rest) > 0 {
			p.streams[stream] = rest
			break
		}
		form = 0
	case formEnd:
		p.ends, p.Done = true, parseDone(&d)
	case formRefused:
		p.ends, p.Refusal = true, Refusal(d.Byte())
		if p.Refusal == Granted {
			form = 0
		}
	default:
		form = 0
	}
	if form == 0 || !d.Done() || p.ends && p.Refusal == Granted && p.Attempt == 0 ||
		len(p.streams[0]) > maxPiece || len(p.streams[1]) > maxPiece {
		return part{}, fmt.Errorf("%w: a frame of %d bytes", errWire, len(b))
	}
	return p, nil
}

// parseDone reads which attempt an output is of; attempt 0 is none.
func parseDone(d *relay.Decoder) Done {
	attempt, token := d.Uvarint(), d.Uvarint()
	if attempt != uint64(uint32(attempt)) {
		attempt = 0
	}
	return Done{Attempt: uint32(attempt), Token: token}
}
