package relay

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// What only the leader says is ordered for no other member, and neither is what another site says.
func TestForwardedCommands(t *testing.T) {
	s := &session{c: &Calls{}, site: "b"}
	for name, c := range map[string]struct {
		site string
		body command.Body
		ok   bool
	}{
		"its own offer":     {"b", &command.Offer{Version: 1}, true},
		"another's offer":   {"c", &command.Offer{Version: 1}, false},
		"a loss":            {"b", &command.SiteLost{Site: "c", Term: 1}, false},
		"a suspicion":       {"b", &command.Suspect{Site: "c", On: true}, false},
		"a raise":           {"b", &command.Raise{Version: 2}, false},
		"a key of gossip":   {"b", &command.GossipKey{Term: 1, Generation: 1, Key: [32]byte{1}}, false},
		"a recovery":        {"b", &command.Recover{Epoch: 1}, false},
		"a report of ended": {"b", &command.Complete{}, true},
	} {
		cmd := command.Append(nil, command.Command{ID: command.ID{Site: c.site, Incarnation: 1, Seq: 1}, Body: c.body})
		if ok, _ := s.checkCommands(&item{cmds: [][]byte{cmd}}); ok != c.ok {
			t.Errorf("%s: taken %v", name, ok)
		}
		own := command.Append(
			nil,
			command.Command{ID: command.ID{Site: "b", Incarnation: 1, Seq: 2}, Body: &command.Started{}},
		)
		if ok, _ := s.checkCommands(&item{cmds: [][]byte{own, cmd}}); ok != c.ok {
			t.Errorf("%s beside its own: taken %v", name, ok)
		}
		if ok, _ := s.checkCommands(&item{cmds: [][]byte{append(cmd, 0)}}); ok {
			t.Errorf("%s with more behind it is taken", name)
		}
	}
}

// ruled goes by an apply version.
type ruled struct {
	leaderless
	coord.Machine
	version uint32
}

func (r *ruled) Version() uint32              { return r.version }
func (r *ruled) With(f func(m coord.Machine)) { f(r) }

// Commands of a kind that only a newer apply version has are refused by all
// until it is in force, and whoever is ahead of the leader tries again.
func TestCommandsOfANewerVersion(t *testing.T) {
	backend := &ruled{version: command.FirstVersion}
	c := New(t.Context(), Config{Site: "a", Backend: backend}, testGroup, testGroup)
	s := &session{c: c, site: "b", kick: make(chan struct{}, 1), calls: share{of: c.budgets.calls, site: "b"}}
	call := func(seq uint64, body command.Body) {
		t.Helper()
		cmd := command.Append(nil, command.Command{ID: command.ID{Site: "b", Incarnation: 1, Seq: seq}, Body: body})
		frame := appendCalls(nil, 1, []*proposal{{seq: seq, cmds: [][]byte{cmd}}}, nil)
		if err := s.submitCalls(t.Context(), frame[1:]); err != nil {
			t.Fatal(err)
		}
	}
	call(1, &command.Orphans{})
	call(2, &command.Complete{})
	if len(s.done) != 1 || s.done[0].outcome != Refused || c.seq.queue.load.calls != 1 {
		t.Fatalf("before its version: %+v, %d to be ordered", s.done, c.seq.queue.load.calls)
	}
	backend.version = command.OrphansVersion
	call(3, &command.Orphans{})
	if len(s.done) != 1 || c.seq.queue.load.calls != 2 {
		t.Fatalf("in its version: %+v, %d to be ordered", s.done, c.seq.queue.load.calls)
	}
}
