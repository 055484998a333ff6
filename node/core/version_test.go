package core

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestApplyVersionIsRaised: once the brokers of all sites know a newer version,
// the leader's has it ordered, once; a replica that does not know it stops.
func TestApplyVersionIsRaised(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	for i, s := range r.sites {
		if next := r.state.NextVersion(); next > fsm.Version {
			t.Fatalf("%d of %d sites know version %d: next is %d", i, len(r.sites), fsm.Version+1, next)
		}
		boot := [16]byte{100, byte(i)}
		res := r.apply(command.Command{ID: command.ID{Site: s.name}, Body: &command.Register{
			Node: [16]byte{s.name[0]}, Boot: boot, HTTP: "127.0.0.1:1", Peer: "127.0.0.1:2", MaxVersion: fsm.Version + 1,
		}})
		s.turn(RegisteredEvent{res[0], boot})
	}
	a := r.sites[0]
	a.pending = nil
	raise := RaiseEvent{r.state.NextVersion()}
	a.turn(raise)
	a.turn(raise, raise)
	var raises []command.Command
	for _, cmd := range a.pending {
		if _, ok := cmd.Body.(*command.Raise); ok {
			raises = append(raises, cmd)
		}
	}
	if len(raises) != 1 {
		t.Fatalf("proposed %d times, want once: %v", len(raises), a.pending)
	}
	if res := r.apply(a.pending...); res[0].Code != command.OK || r.state.Version() != fsm.Version+1 {
		t.Fatalf("%v: version %d, want %d", res, r.state.Version(), fsm.Version+1)
	}

	entry, err := command.DecodeBatch((&command.Batch{Term: 1}).Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.state.Apply(entry); !errors.Is(err, fsm.ErrNewVersion) {
		t.Errorf("a replica that does not know the version goes on: %v", err)
	}
}

// A key of gossip is ordered once, and again when the term of the first one is over.
func TestGossipKeyIsOrderedOnce(t *testing.T) {
	a := newRig(t, command.DefaultParams(), 1).sites[0]
	a.pending = nil
	ordered := func(ev GossipKeyEvent, want uint64) {
		t.Helper()
		a.turn(ev)
		a.turn(ev, ev)
		var terms []uint64
		for _, cmd := range a.pending {
			if key, ok := cmd.Body.(*command.GossipKey); ok {
				terms = append(terms, key.Term)
			}
		}
		if len(terms) != 1 || terms[0] != want {
			t.Fatalf("keys of the terms %d were ordered, want one of term %d", terms, want)
		}
		cmds := a.pending
		a.pending = nil
		a.turn(ResultEvent{Cmds: cmds, Results: a.rig.apply(cmds...)}) // refused: there is no roster
	}
	ordered(GossipKeyEvent{Term: 1, Generation: 1, Key: [32]byte{1}}, 1)
	ordered(GossipKeyEvent{Term: 2, Generation: 1, Key: [32]byte{2}}, 2)
}
