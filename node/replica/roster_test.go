package replica

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Who the members are is told with the entry that decides it, and after a restored snapshot.
func TestRosterIsTold(t *testing.T) {
	r := NewReplica()
	if !r.MayVote("a") || r.Expelled("a") {
		t.Error("without a roster a may not vote, or is expelled")
	}
	var told []roster.Contents
	tell := func(_ uint64, c roster.Contents) { told = append(told, c) }
	r.OnRoster(tell)
	var gossip []uint64 // generations
	r.OnGossip(func(key roster.GossipKey) { gossip = append(gossip, key.Generation) })
	key := identity.FromSeed([32]byte{1})
	founder := signature.Key(key.Public())
	apply := func(id command.ID, body command.Body) {
		t.Helper()
		cmd := command.Append(nil, command.Command{ID: id, Body: body})
		entry := command.AppendBatch(nil, 1, 0, [][]byte{cmd}, []command.Bundle{
			command.SignBundle([16]byte{7}, "a", 1, cmd, key.Sign),
		})
		if res, err := r.Apply(entry); err != nil || res[0].Code != command.OK {
			t.Fatal(res, err)
		}
	}
	apply(command.ID{Site: "a"}, &command.Genesis{
		Federation: [16]byte{7}, Params: command.DefaultParams(), Founder: founder,
	})
	if len(told) != 1 || len(told[0].Members) != 1 || told[0].Members[0].Key != founder {
		t.Fatalf("%+v", told)
	}
	apply(command.ID{Site: "a"}, &command.Register{Node: founder.Node(), Boot: [16]byte{1}, MaxVersion: fsm.Version})
	if len(told) != 1 {
		t.Error("told again, though nothing has changed")
	}
	if !r.MayVote("a") || r.MayVote("b") || r.Expelled("b") {
		t.Error("a may not vote, or b may, or is expelled")
	}
	apply(command.ID{Site: "a", Incarnation: 1, Seq: 1}, &command.GossipKey{Term: 1, Generation: 1, Key: [32]byte{1}})
	if want := []uint64{0, 1}; !slices.Equal(gossip, want) || len(told) != 2 || told[1].Gossip.Key != [32]byte{1} {
		t.Errorf("generations %d, want %d; %+v", gossip, want, told)
	}
	// What has no event wakes those who look at the members all the same.
	before, _ := r.Feed().Moved()
	apply(command.ID{Site: "a", Incarnation: 1, Seq: 2}, &command.Invite{Site: "b", Key: signature.Key{2}, ForMs: 60_000})
	if moved, _ := r.Feed().Moved(); moved != r.Index() || moved == before {
		t.Errorf("moved in %d, was %d, and the entry is %d", moved, before, r.Index())
	}
	var snapshot bytes.Buffer
	s, err := r.Snapshot()
	if err == nil {
		err = s.Write(&snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := NewReplica()
	other.OnRoster(tell)
	if err = other.Restore(&snapshot); err != nil || len(told) != 3 || told[2].Members[0].Site != "a" {
		t.Errorf("%+v, %v", told, err)
	}
}
