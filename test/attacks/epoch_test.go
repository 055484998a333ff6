//go:build attacks

package attacks

import (
	"encoding/hex"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// liar answers all questions at a peer port, as one that has gone on into a later epoch.
type liar struct {
	site, node, addr string
	federation       string
	asked            atomic.Int64
}

func (l *liar) answer(map[string]any) any {
	l.asked.Add(1)
	return map[string]any{
		"code": "ok", "site": l.site, "node": l.node, "addr": l.addr, "instance": "liar", "resting": true,
		"federation": l.federation, "epoch": 7, "lineage": strings.Repeat("07", 16),
	}
}

// lying opens a peer port of a liar.
func lying(t *testing.T, who *intruder.Intruder) *liar {
	t.Helper()
	node := who.Key.Public().Node()
	l := &liar{site: who.Site, node: hex.EncodeToString(node[:]), federation: hex.EncodeToString(who.Group[:])}
	port, err := who.Listen(l.answer, http.NotFoundHandler(), nil)
	must(t, err)
	t.Cleanup(port.Close)
	l.addr = port.Addr
	return l
}

// join asks the leader to have a node in the group.
func (l *liar) join(t *testing.T, who *intruder.Intruder) map[string]any {
	t.Helper()
	a, err := who.AskAt(within(t), peerOf(t, leader(t)), relay.KindJoin, map[string]any{
		"site": l.site, "node": l.node, "addr": l.addr, "instance": "liar",
	})
	must(t, err)
	return a
}

// TestLaterEpochOfAStranger: nobody believes what a stranger answers, be it at an address that was told as a member's.
func TestLaterEpochOfAStranger(t *testing.T) {
	attacked(t)
	fake := lying(t, stranger(t, "mallory"))
	who := mallory(t)
	node := who.Key.Public().Node()
	a, err := who.AskAt(within(t), peerOf(t, leader(t)), relay.KindJoin, map[string]any{
		"site": who.Site, "node": hex.EncodeToString(node[:]), "addr": fake.addr, "instance": "liar",
	})
	if err != nil || a["code"] == "ok" {
		t.Errorf("the group takes the address: %v, %v", a, err)
	}
}

// TestLaterEpochOfAMember: a member without a vote that says the federation has gone on without the others stops none.
func TestLaterEpochOfAMember(t *testing.T) {
	attacked(t)
	who := admit(t, "eve")
	l := lying(t, who.Intruder)
	if a := l.join(t, who.Intruder); a["code"] != "ok" {
		t.Fatalf("%v", a)
	}
	joined := l.asked.Load()
	await(t, "the leader asks it who it is", func() error {
		if l.asked.Load() <= joined {
			return errNotYet
		}
		return nil
	})
	healthy(t)
	who.register(t, command.Addresses{Peer: l.addr})
	if _, err := who.order(t, who.own(&command.Leave{})); err != nil {
		t.Error(err)
	}
	if err := who.call(t).Remove(who.Site); err != nil { // its node: nobody needs to go on asking
		t.Error(err)
	}
}
