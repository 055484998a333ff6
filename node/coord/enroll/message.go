package enroll

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
)

// Bounds of a question and of an answer, in bytes.
const (
	maxQuestion = 4 << 10
	maxAnswer   = 8 << 20
)

// Verdict is what became of a question.
type Verdict string

// The verdicts.
const (
	Admitted Verdict = "admitted" // or the key was replaced
	Pending  Verdict = "pending"  // the electors have not agreed yet
	Refused  Verdict = "refused"  // it is of no use to ask again
	Later    Verdict = "later"    // not now: ask again
)

// question is what is asked.
type question struct {
	Federation string `json:"federation"` // in which it is asked; hex
	// Command is as command.Append writes it: an Admit or a Rekey. Empty: a member asks who the members are now.
	Command []byte `json:"command,omitempty"`
}

// answer is what is answered.
type answer struct {
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Code is the command's, where one was ordered.
	Code    command.Code `json:"code,omitempty"`
	Waiting []string     `json:"waiting,omitempty"` // electors that have not voted, while it is Pending
	// Roster is who the members are, for one who is one now.
	Roster json.RawMessage `json:"roster,omitempty"`
}

var errQuestion = errors.New("malformed question")

// parseQuestion reads a question, and no other command than those that prove themselves. body is nil if a member asks
// for the roster.
func parseQuestion(b []byte) (federation [16]byte, body command.Body, err error) {
	var q question
	if err = json.Unmarshal(b, &q); err != nil {
		return federation, nil, fmt.Errorf("%w: %w", errQuestion, err)
	}
	id, err := hex.DecodeString(q.Federation)
	if err != nil || len(id) != len(federation) {
		return federation, nil, fmt.Errorf("%w: federation %.40q", errQuestion, q.Federation)
	}
	if len(q.Command) == 0 {
		return [16]byte(id), nil, nil
	}
	c, rest, err := command.Decode(q.Command)
	if err != nil || len(rest) > 0 {
		return federation, nil, fmt.Errorf("%w: %w", errQuestion, err)
	}
	switch c.Body.(type) {
	case *command.Admit, *command.Rekey:
		return [16]byte(id), c.Body, nil
	}
	return federation, nil, fmt.Errorf("%w: a command of kind %d", errQuestion, c.Body.Kind())
}

// encodeQuestion writes a question; a nil body asks for the roster.
func encodeQuestion(federation [16]byte, site string, body command.Body) ([]byte, error) {
	q := question{Federation: hex.EncodeToString(federation[:])}
	if body != nil {
		q.Command = command.Append(nil, command.Command{ID: command.ID{Site: site}, Body: body})
	}
	return json.Marshal(q)
}

// parseAnswer reads an answer; the roster is that of a member only.
func parseAnswer(b []byte) (a answer, r truststore.Roster, err error) {
	if err = json.Unmarshal(b, &a); err != nil {
		return a, r, fmt.Errorf("malformed answer: %w", err)
	}
	if a.Verdict == Admitted {
		r, err = truststore.Parse(a.Roster)
	}
	return a, r, err
}
