package intruder

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Conn is a connection that was greeted.
type Conn struct {
	net.Conn
	by *Intruder // who signs what it has ordered; nil: nobody
}

// Rejected is the leader's word on a call that it will never order.
const Rejected = relay.Unknown + 1

// Frames of a forward connection.
const (
	frameCalls  = 1
	frameRemove = 3
	frameDone   = 4
	frameAnswer = 5
)

// answerRefused is the code of an answer that says no, and why.
const answerRefused = 2

// ErrAnswer reports an answer of another form.
var ErrAnswer = errors.New("not the expected answer")

// Send writes one frame.
func (c Conn) Send(body []byte) error {
	_, err := c.Write(relay.EndFrame(append(relay.Frame(nil), body...)))
	return err
}

// Receive reads one frame.
func (c Conn) Receive() ([]byte, error) { return relay.ReadFrame(c, nil, 16<<20) }

// Order asks the leader to order commands as one call, whose numbers seq must be new. It returns the outcome, and the
// place in raft's log if they stand there.
func (c Conn) Order(seq uint64, commands ...command.Command) (relay.Outcome, uint64, error) {
	var raw [][]byte
	for _, cmd := range commands {
		raw = append(raw, command.Append(nil, cmd))
	}
	return c.OrderRaw(seq, raw...)
}

// OrderRaw is Order for what may be no commands.
func (c Conn) OrderRaw(seq uint64, commands ...[]byte) (relay.Outcome, uint64, error) {
	var by signature.Signature
	if c.by != nil {
		by = c.by.Sign(bytes.Join(commands, nil))
	}
	return c.OrderSigned(seq, by, commands...)
}

// OrderSigned is OrderRaw with any signature.
func (c Conn) OrderSigned(seq uint64, by signature.Signature, commands ...[]byte) (relay.Outcome, uint64, error) {
	b := binary.BigEndian.AppendUint64([]byte{frameCalls}, 0xa77ac4)
	b = append(b, by[:]...)
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, seq)
	b = binary.AppendUvarint(b, uint64(len(commands)))
	b = append(b, bytes.Join(commands, nil)...)
	if err := c.Send(b); err != nil {
		return 0, 0, err
	}
	b, err := c.Receive()
	if err != nil {
		return 0, 0, err
	}
	d := relay.NewDecoder(b)
	kind, n := d.Byte(), d.Uvarint()
	got, outcome, index := d.Uvarint(), relay.Outcome(d.Byte()), d.Uvarint()
	if kind != frameDone || n != 1 || got != seq || !d.Done() {
		return 0, 0, fmt.Errorf("%w: outcome %x", ErrAnswer, b)
	}
	return outcome, index, nil
}

// Remove asks the leader to take a site's node out of the group; the error is its refusal.
func (c Conn) Remove(site string) error {
	b := binary.AppendUvarint([]byte{frameRemove}, 1)
	b = append(binary.AppendUvarint(b, uint64(len(site))), site...)
	if err := c.Send(b); err != nil {
		return err
	}
	b, err := c.Receive()
	if err != nil {
		return err
	}
	d := relay.NewDecoder(b)
	kind, _, code, _, _, text := d.Byte(), d.Uvarint(), d.Byte(), d.Uvarint(), d.Uvarint(), d.Bytes(4096)
	switch {
	case kind != frameAnswer || !d.Done():
		return fmt.Errorf("%w: %x", ErrAnswer, b)
	case code == answerRefused:
		return fmt.Errorf("%w: %s", ErrRemoveRefused, text)
	case code != 0:
		return fmt.Errorf("%w: code %d", ErrAnswer, code)
	}
	return nil
}

// ErrRemoveRefused is the leader's answer to a Remove of another site.
var ErrRemoveRefused = errors.New("refused")

// Ask sends a JSON document as a frame, and reads another one.
func (c Conn) Ask(question any) (answer map[string]any, err error) {
	b, err := json.Marshal(question)
	if err == nil {
		err = c.Send(b)
	}
	if err == nil {
		b, err = c.Receive()
	}
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer, err
}

// AskAt dials for one question.
func (i *Intruder) AskAt(ctx context.Context, to relay.Peer, kind relay.Kind, question any) (map[string]any, error) {
	conn, err := i.Dial(ctx, to, kind)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.Ask(question)
}
