package relay

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// What only the leader says is ordered for no other member, and neither is what another site says.
func TestForwardedCommands(t *testing.T) {
	s := &session{site: "b"}
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
		if ok, _ := s.checkCommands([][]byte{cmd}); ok != c.ok {
			t.Errorf("%s: taken %v", name, ok)
		}
		own := command.Append(
			nil,
			command.Command{ID: command.ID{Site: "b", Incarnation: 1, Seq: 2}, Body: &command.Started{}},
		)
		if ok, _ := s.checkCommands([][]byte{own, cmd}); ok != c.ok {
			t.Errorf("%s beside its own: taken %v", name, ok)
		}
		if ok, _ := s.checkCommands([][]byte{append(cmd, 0)}); ok {
			t.Errorf("%s with more behind it is taken", name)
		}
	}
	if ok, _ := s.checkCommands(nil); ok {
		t.Error("a call of nothing is taken")
	}
}
