//go:build attacks

package attacks

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// hostile is a member without a vote that runs no broker: it says at the peer ports whatever it likes.
type hostile struct {
	*intruder.Intruder
	incarnation, seq uint64 // of its commands
	calls            uint64
}

// admit has the federation admit a member without a vote.
func admit(t *testing.T, name string) *hostile {
	t.Helper()
	token, err := shared.Sites[0].InviteWith(within(t), name, map[string]any{"vote": false}, shared.Sites[1])
	must(t, err)
	i, err := intruder.Admitted(within(t), t.TempDir(), token)
	must(t, err)
	for _, s := range shared.Sites { // they learn of it by its entry
		await(t, s.Name+" knows "+name, func() error {
			conn, err := i.Dial(t.Context(), peerOf(t, s), relay.KindForward)
			if err == nil {
				_ = conn.Close()
			}
			return err
		})
	}
	return &hostile{Intruder: i}
}

// theMallory is one such member for all tests that do not care about its state.
var theMallory *hostile

// mallory returns it, registered again: its lease may have ended.
func mallory(t *testing.T) *hostile {
	t.Helper()
	if theMallory == nil {
		theMallory = admit(t, "mallory")
	}
	theMallory.register(t, command.Addresses{})
	return theMallory
}

// call opens a connection on which it has commands ordered by the leader.
func (h *hostile) call(t *testing.T) intruder.Conn {
	t.Helper()
	conn, err := h.Dial(within(t), peerOf(t, leader(t)), relay.KindForward)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// order has commands ordered, whoever's they are, and waits until the first broker has executed them.
func (h *hostile) order(t *testing.T, commands ...command.Command) (relay.Outcome, error) {
	t.Helper()
	h.calls++
	conn := h.call(t)
	defer conn.Close()
	outcome, _, err := conn.Order(h.calls, commands...)
	if outcome == relay.Ordered && err == nil {
		_, _, err = shared.Sites[0].Do(within(t), "GET", "/v1/members?max_staleness=0s", nil, nil)
	}
	return outcome, err
}

// own is a command of its own.
func (h *hostile) own(body command.Body) command.Command {
	h.seq++
	return command.Command{
		ID:   command.ID{Site: h.Site, Incarnation: h.incarnation, Seq: h.seq},
		Ack:  h.seq - 1,
		Body: body,
	}
}

// register introduces it as a broker that starts, at some addresses.
func (h *hostile) register(t *testing.T, at command.Addresses) {
	t.Helper()
	body := &command.Register{
		Node: h.Key.Public().Node(), Boot: [16]byte{1, byte(h.calls), byte(h.calls >> 8)}, MaxVersion: fsm.Version,
		After: h.incarnation, HTTP: at.HTTP, Peer: at.Peer, Gossip: at.Gossip,
	}
	outcome, err := h.order(t, command.Command{ID: command.ID{Site: h.Site}, Body: body})
	if err != nil || outcome != relay.Ordered {
		t.Fatalf("%s registers: %d, %v", h.Site, outcome, err)
	}
	before := h.incarnation
	await(t, "registered", func() error {
		info, err := shared.Sites[0].Info(t.Context(), h.Site)
		if err == nil && info.Incarnation <= before {
			err = fmt.Errorf("incarnation %d", info.Incarnation)
		}
		h.incarnation = info.Incarnation
		return err
	})
	h.seq = 0
}
