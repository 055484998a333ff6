package relay

import (
	"encoding/binary"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Frames of a forward connection: u32 length · kind · body.
const (
	frameCalls  = 1 // → leader: u64 origin · signature · n · n × (seq · n) · commands
	frameRead   = 2 // → leader: id; wants an index that a current read must reach
	frameRemove = 3 // → leader: id · site
	frameDone   = 4 // ← n · n × (seq · outcome · raft index)
	frameAnswer = 5 // ← id · answer code · raft index · term · text
	// The site of these two is the connection's.
	frameRenew  = 6 // → leader: id · incarnation
	frameDemote = 7 // → leader: id
)

// answer to a question.
type answer struct {
	code  answerCode
	index uint64 // to be applied by the asker
	term  uint64 // that the answering member leads, 0 = not said
	text  string
}

type answerCode uint8

const (
	answerOK      answerCode = iota
	answerRetry              // no leader here now
	answerRefused            // text says why
)

// doneCall is one call's outcome on its way back.
type doneCall struct {
	seq     uint64
	outcome Outcome
	index   uint64
}

// Bounds of a frame of calls, which the forwarding side keeps. It is one bundle, which nobody can divide, so it takes
// what the next entry has room for: more than one call within maxBundleCommands and maxBundleBytes, so that bundles of
// many sites share an entry.
const (
	frameMaxCalls     = 4096
	frameMaxCommands  = MaxEntryCommands
	maxBundleCommands = 1024
	maxBundleBytes    = 64 << 10
)

// What a call and a command take in memory at the leader besides their bytes, at
// most: their places in slices and queues, and who is told the outcome.
const (
	callCost    = 512
	commandCost = 64
)

// frameCost returns what a frame holds in memory until its last call has an outcome: the
// commands point into the frame.
func frameCost(size int, it *item) int {
	return size + callCost*len(it.calls) + commandCost*it.commands
}

// signer signs the encodings of so many commands.
type signer func(encoded []byte, commands int) signature.Signature

// appendCalls appends a frame's body; sign, if not nil, signs the commands' encodings.
func appendCalls(dst []byte, origin uint64, calls []*proposal, sign signer) []byte {
	dst = append(dst, frameCalls)
	dst = binary.BigEndian.AppendUint64(dst, origin)
	var signed signature.Signature
	at, commands := len(dst), 0
	dst = append(dst, signed[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(calls)))
	for _, c := range calls {
		dst = binary.AppendUvarint(dst, c.seq)
		dst = binary.AppendUvarint(dst, uint64(len(c.cmds)))
		commands += len(c.cmds)
	}
	from := len(dst)
	for _, c := range calls {
		for _, cmd := range c.cmds {
			dst = append(dst, cmd...)
		}
	}
	if sign != nil {
		signed = sign(dst[from:], commands)
		copy(dst[at:], signed[:])
	}
	return dst
}

// parseCalls returns the calls of a frame of a site, whose commands point into b. It refuses what no member sends: no
// calls, and calls without commands, which cost memory and no bytes.
func parseCalls(b []byte, site string) (item, error) {
	d := NewDecoder(b)
	origin := d.Uint64()
	it := item{signed: &command.Bundle{Site: site}}
	copy(it.signed.Signature[:], d.Fixed(len(it.signed.Signature)))
	n := d.Count(frameMaxCalls, 2) // of a number and a count at least
	it.calls = make([]call, 0, n)
	for range n {
		c := call{origin: origin, seq: d.Uvarint(), commands: d.Count(MaxCallCommands, 1)}
		if it.commands += c.commands; c.commands == 0 || it.commands > frameMaxCommands {
			d.fail()
		}
		if d.Bad() {
			break
		}
		it.calls = append(it.calls, c)
	}
	it.signed.Commands, it.signed.Signed, it.bytes = it.commands, d.Rest(), d.Left()
	it.cmds = d.commands(it.commands)
	switch {
	case n == 0 || !d.Done():
		return item{}, fmt.Errorf("%w: %d calls with %d commands, the limits are 1 to %d and %d, none empty",
			errFrame, n, it.commands, frameMaxCalls, frameMaxCommands)
	case n > 1 && (it.commands > maxBundleCommands || it.bytes > maxBundleBytes):
		return item{}, fmt.Errorf("%w: %d calls with %d commands of %d bytes, the limits of more than one are %d and %d",
			errFrame, n, it.commands, it.bytes, maxBundleCommands, maxBundleBytes)
	}
	return it, nil
}

// commands reads so many commands, each with its length.
func (d *Decoder) commands(n int) [][]byte {
	cmds := make([][]byte, 0, min(n, d.Left()))
	for range n {
		from := d.Rest()
		if len(d.Bytes(MaxCallBytes)) == 0 {
			d.fail()
		}
		end := len(from) - d.Left()
		cmds = append(cmds, from[:end:end])
	}
	return cmds
}

func appendDone(dst []byte, all []doneCall) []byte {
	dst = append(dst, frameDone)
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, d := range all {
		dst = binary.AppendUvarint(dst, d.seq)
		dst = append(dst, byte(d.outcome))
		dst = binary.AppendUvarint(dst, d.index)
	}
	return dst
}

func parseDone(b []byte) ([]doneCall, error) {
	d := NewDecoder(b)
	n := d.Count(MaxFrame, 3)
	all := make([]doneCall, 0, n)
	for range n {
		all = append(all, doneCall{seq: d.Uvarint(), outcome: Outcome(d.Byte()), index: d.Uvarint()})
	}
	if !d.Done() {
		return nil, fmt.Errorf("%w: outcomes", errFrame)
	}
	return all, nil
}

func appendAnswer(dst []byte, id uint64, a answer) []byte {
	dst = append(dst, frameAnswer)
	dst = binary.AppendUvarint(dst, id)
	dst = append(dst, byte(a.code))
	dst = binary.AppendUvarint(dst, a.index)
	dst = binary.AppendUvarint(dst, a.term)
	dst = binary.AppendUvarint(dst, uint64(len(a.text)))
	return append(dst, a.text...)
}

func parseAnswer(b []byte) (id uint64, a answer, err error) {
	d := NewDecoder(b)
	id = d.Uvarint()
	a = answer{code: answerCode(d.Byte()), index: d.Uvarint(), term: d.Uvarint(), text: string(d.Bytes(4096))}
	if !d.Done() {
		return 0, answer{}, fmt.Errorf("%w: answer", errFrame)
	}
	return id, a, nil
}

func appendQuestion(dst []byte, q leaderQuestion) []byte {
	dst = append(dst, q.kind)
	dst = binary.AppendUvarint(dst, q.id)
	switch q.kind {
	case frameRemove:
		dst = binary.AppendUvarint(dst, uint64(len(q.site)))
		dst = append(dst, q.site...)
	case frameRenew:
		dst = binary.AppendUvarint(dst, q.incarnation)
	}
	return dst
}

// parseQuestion reads a frame with its kind.
func parseQuestion(b []byte) (leaderQuestion, error) {
	d := NewDecoder(b)
	q := leaderQuestion{kind: d.Byte(), id: d.Uvarint()}
	switch q.kind {
	case frameRead, frameDemote:
	case frameRemove:
		q.site = string(d.Bytes(63))
	case frameRenew:
		q.incarnation = d.Uvarint()
	default:
		d.fail()
	}
	if !d.Done() {
		return leaderQuestion{}, fmt.Errorf("%w: question", errFrame)
	}
	return q, nil
}
