package relay

import (
	"encoding/binary"
	"fmt"
)

// Frames of a forward connection: u32 length · kind · body.
const (
	frameCalls  = 1 // → leader: u64 origin · n · n × (seq · n · n × bytes)
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

// Bounds of a frame of calls, which the forwarding side keeps. The size is a soft
// one: the last call may go beyond it, up to MaxFrame.
const (
	frameMaxCalls    = 4096
	frameMaxCommands = 16 << 10
	frameSoftSize    = 1 << 20
)

// What a call and a command take in memory at the leader besides their bytes, at
// most: their places in slices and queues, and who is told the outcome.
const (
	callCost    = 512
	commandCost = 64
)

// frameCost returns what a frame holds in memory until its last call has an outcome: the
// commands point into the frame.
func frameCost(size int, items []item) int {
	n := size
	for _, it := range items {
		n += callCost + commandCost*it.commands
	}
	return n
}

func appendCalls(dst []byte, origin uint64, calls []*proposal) []byte {
	dst = append(dst, frameCalls)
	dst = binary.BigEndian.AppendUint64(dst, origin)
	dst = binary.AppendUvarint(dst, uint64(len(calls)))
	for _, c := range calls {
		dst = binary.AppendUvarint(dst, c.seq)
		dst = binary.AppendUvarint(dst, uint64(len(c.cmds)))
		for _, cmd := range c.cmds {
			dst = binary.AppendUvarint(dst, uint64(len(cmd)))
			dst = append(dst, cmd...)
		}
	}
	return dst
}

// parseCalls returns items whose commands point into b. It refuses what no member
// sends: no calls, calls without commands, and empty commands, which cost memory and
// no bytes.
func parseCalls(b []byte) ([]item, error) {
	d := NewDecoder(b)
	origin := d.Uint64()
	n := d.Count(frameMaxCalls, 4) // of a number, a count, a length and a byte at least
	items := make([]item, 0, n)
	commands := 0
	for range n {
		it := item{call: call{origin: origin, seq: d.Uvarint()}}
		it.commands = d.Count(MaxCallCommands, 2)
		if commands += it.commands; it.commands == 0 || commands > frameMaxCommands {
			d.fail()
		}
		if d.Bad() {
			break
		}
		it.cmds = make([][]byte, 0, it.commands)
		for range it.commands {
			cmd := d.Bytes(MaxCallBytes)
			if len(cmd) == 0 {
				d.fail()
			}
			it.cmds = append(it.cmds, cmd)
			it.bytes += len(cmd)
		}
		items = append(items, it)
	}
	if n == 0 || !d.Done() {
		return nil, fmt.Errorf("%w: %d calls with %d commands, the limits are 1 to %d and %d, none empty",
			errFrame, n, commands, frameMaxCalls, frameMaxCommands)
	}
	return items, nil
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
