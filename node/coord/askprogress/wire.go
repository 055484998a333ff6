package askprogress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Bounds of a question and its answer.
const (
	// MaxAttempts are asked for at once.
	MaxAttempts = 100
	// MaxText bounds the bytes of what is told of one.
	MaxText     = 200
	maxQuestion = binary.MaxVarintLen64 * (1 + 4*MaxAttempts)
	maxAnswer   = binary.MaxVarintLen64 + MaxAttempts*(binary.MaxVarintLen64+MaxText)
)

var errWire = errors.New("malformed question for progress, or answer")

// Ref names an attempt of a job of the site that asks.
type Ref struct {
	Num     uint64 // of the job
	Task    uint32 // its position
	Attempt uint32
	Token   uint64
}

func appendQuestion(dst []byte, refs []Ref) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(refs)))
	for _, r := range refs {
		for _, v := range [...]uint64{r.Num, uint64(r.Task), uint64(r.Attempt), r.Token} {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	return dst
}

func parseQuestion(b []byte) ([]Ref, error) {
	d := relay.NewDecoder(b)
	n := d.Count(MaxAttempts, 4)
	refs := make([]Ref, 0, n)
	for range n {
		num, task, attempt, token := d.Uvarint(), d.Uvarint(), d.Uvarint(), d.Uvarint()
		r := Ref{Num: num, Task: uint32(task), Attempt: uint32(attempt), Token: token}
		if uint64(r.Task) != task || uint64(r.Attempt) != attempt {
			return nil, fmt.Errorf("%w: task %d, attempt %d", errWire, task, attempt)
		}
		refs = append(refs, r)
	}
	if n == 0 || !d.Done() {
		return nil, fmt.Errorf("%w: a question of %d bytes", errWire, len(b))
	}
	return refs, nil
}

// appendAnswer writes n texts; one that is missing, or cannot be sent, is empty.
func appendAnswer(dst []byte, texts []string, n int) []byte {
	for i := range n {
		text := ""
		if i < len(texts) {
			text = clip(texts[i])
		}
		dst = binary.AppendUvarint(dst, uint64(len(text)))
		dst = append(dst, text...)
	}
	return dst
}

// clip cuts a text so that it can be sent.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	for len(text) > MaxText {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// parseAnswer reads the answer to a question for n attempts.
func parseAnswer(b []byte, n int) ([]string, error) {
	d := relay.NewDecoder(b)
	texts := make([]string, n)
	for i := range texts {
		size := d.Uvarint()
		if size > MaxText || size > uint64(d.Left()) {
			return nil, fmt.Errorf("%w: a text of %d bytes", errWire, size)
		}
		texts[i] = string(d.Fixed(int(size)))
		if clip(texts[i]) != texts[i] {
			return nil, fmt.Errorf("%w: a text that nobody can read", errWire)
		}
	}
	if !d.Done() {
		return nil, fmt.Errorf("%w: %d bytes for %d attempts", errWire, len(b), n)
	}
	return texts, nil
}
