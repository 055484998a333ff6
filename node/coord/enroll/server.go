package enroll

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Host is what a member that answers needs of its broker.
type Host interface {
	// Enroll has a command ordered that proves itself, and returns its code.
	Enroll(ctx context.Context, body command.Body) (command.Code, error)
	// Waiting returns the electors that have not voted on an invitation.
	Waiting(a *command.Admit) []string
	// Roster returns who the members are.
	Roster() truststore.Roster
}

// patience is how long a question may take, its order by the quorum included.
const patience = 15 * time.Second

// Serve answers one question. h is nil as long as the broker is not ready.
func Serve(ctx context.Context, conn net.Conn, h Host) error {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	b, err := relay.ReadFrame(bufio.NewReader(conn), nil, maxQuestion)
	if err != nil {
		return fmt.Errorf("enroll: %w", err)
	}
	relay.QuestionReceived(conn)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var by asker
	by.key, by.member, _ = relay.Proven(conn)
	a := decide(ctx, b, by, h)
	if b, err = json.Marshal(a); err == nil {
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = conn.Write(relay.EndFrame(append(relay.Frame(nil), b...)))
	}
	return err
}

// asker is who asks, as the connection has proven.
type asker struct {
	key    identity.Public
	member string // whose key that is; "" = a stranger's
}

// mayBring reports whether a command is the asker's own: it is for the key with which it asks. Somebody else who had
// copied it would be told who the members are.
func (a asker) mayBring(body command.Body) bool {
	switch c := body.(type) {
	case *command.Admit:
		return identity.Public(c.Key) == a.key
	case *command.Rekey:
		return identity.Public(c.Key) == a.key
	}
	return false
}

// decide returns the answer to a question.
func decide(ctx context.Context, b []byte, by asker, h Host) answer {
	federation, body, err := parseQuestion(b)
	switch {
	case err != nil:
		return answer{Verdict: Refused, Why: err.Error()}
	case h == nil:
		return answer{Verdict: Later, Why: "the broker that is asked has just been started"}
	case h.Roster().Federation != federation:
		return answer{Verdict: Refused, Why: fmt.Sprintf("this is federation %x, the question is for %x: use the invitation at the "+
			"addresses that it names", h.Roster().Federation, federation)}
	}
	if body == nil {
		return tell(by.member, h)
	}
	if !by.mayBring(body) {
		return answer{Verdict: Refused, Why: "whoever asks must show the key that is to be the site's from now on"}
	}
	code, err := h.Enroll(ctx, body)
	if err != nil {
		return answer{Verdict: Later, Why: err.Error()}
	}
	switch {
	case code == command.OK:
		return admitted(h)
	case code == command.Pending:
		a := answer{Verdict: Pending, Why: code.String()}
		if admit, ok := body.(*command.Admit); ok {
			a.Waiting = h.Waiting(admit)
		}
		return a
	case code == command.Busy:
		return answer{Verdict: Later, Why: code.String()}
	}
	return answer{Verdict: Refused, Why: code.String(), Code: code}
}

// tell says who the members are, to members alone.
func tell(member string, h Host) answer {
	if member == "" {
		return answer{Verdict: Refused, Why: "only members are told who the members are"}
	}
	return admitted(h)
}

func admitted(h Host) answer {
	roster, err := truststore.Encode(h.Roster())
	if err != nil {
		return answer{Verdict: Later, Why: err.Error()}
	}
	return answer{Verdict: Admitted, Roster: roster}
}
