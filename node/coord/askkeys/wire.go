package askkeys

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Bounds of a question and its answer.
const (
	maxQuestion = binary.MaxVarintLen64 * (2 + 4*seal.MaxKeys)
	maxAnswer   = binary.MaxVarintLen64 + seal.MaxKeys*(1+len(seal.Key{}))
)

var errWire = errors.New("malformed question for keys, or answer")

// Question asks an owner for the keys of attempts of its jobs. The asker's state is as of entry Index.
type Question struct {
	Index    uint64
	Attempts []command.AttemptRef
}

func (q *Question) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, q.Index)
	dst = binary.AppendUvarint(dst, uint64(len(q.Attempts)))
	for _, a := range q.Attempts {
		dst = binary.AppendUvarint(dst, a.Job.Num)
		dst = binary.AppendUvarint(dst, uint64(a.Task))
		dst = binary.AppendUvarint(dst, uint64(a.Attempt))
		dst = binary.AppendUvarint(dst, a.Token)
	}
	return dst
}

// parseQuestion reads a question to an owner.
func parseQuestion(b []byte, owner string) (Question, error) {
	d := relay.NewDecoder(b)
	q := Question{Index: d.Uvarint()}
	n := d.Count(seal.MaxKeys, 4)
	for range n {
		a := command.AttemptRef{Job: command.JobID{Site: owner, Num: d.Uvarint()}}
		task, attempt := d.Uvarint(), d.Uvarint()
		a.Task, a.Attempt, a.Token = uint32(task), uint32(attempt), d.Uvarint()
		if uint64(a.Task) != task || uint64(a.Attempt) != attempt {
			return Question{}, fmt.Errorf("%w: task %d, attempt %d", errWire, task, attempt)
		}
		q.Attempts = append(q.Attempts, a)
	}
	if n == 0 || !d.Done() {
		return Question{}, fmt.Errorf("%w: a question of %d bytes", errWire, len(b))
	}
	return q, nil
}

func appendAnswers(dst []byte, answers []seal.Answer) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(answers)))
	for i := range answers {
		dst = append(dst, byte(answers[i].Refusal))
		if answers[i].Refusal == seal.Granted {
			dst = append(dst, answers[i].Key[:]...)
		}
	}
	return dst
}

// parseAnswers reads the answer to a question for n keys.
func parseAnswers(b []byte, n int) ([]seal.Answer, error) {
	d := relay.NewDecoder(b)
	got := d.Count(seal.MaxKeys, 1)
	answers := make([]seal.Answer, got)
	for i := range answers {
		a := &answers[i]
		if a.Refusal = seal.Refusal(d.Byte()); a.Refusal == seal.Granted {
			copy(a.Key[:], d.Fixed(len(a.Key)))
		}
	}
	if got != n || !d.Done() {
		return nil, fmt.Errorf("%w: %d keys or refusals in %d bytes, asked for %d", errWire, got, len(b), n)
	}
	return answers, nil
}
