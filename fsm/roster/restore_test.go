package roster

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// What no commands lead to is refused.
func TestRestoreRefuses(t *testing.T) {
	key := func(n byte) signature.Key { return signature.Key{0: n} }
	good := func() Contents {
		return Contents{
			Members: []*Member{{Site: "a", Key: key(1), Elector: true}, {Site: "b", Key: key(2)}},
			Invitations: []*Invitation{
				{Key: key(3), Site: "c", By: "a", Motion: 1, State: Claimed, Claimant: key(4)},
			},
			Motions: []*Motion{{Number: 1, Kind: command.MotionAdmit, Site: "c", By: "a", Votes: []Vote{{"a", true}}}},
			Last:    1, Changed: 9,
		}
	}
	if _, err := Restore(RealBounds(10), good(), 9); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(c *Contents){
		"two members of one name":       func(c *Contents) { c.Members[1].Site = "a" },
		"two members of one key":        func(c *Contents) { c.Members[1].Key = key(1) },
		"no key":                        func(c *Contents) { c.Members[1].Key = signature.Key{} },
		"a name that is none":           func(c *Contents) { c.Members[1].Site = "B" },
		"a banned elector":              func(c *Contents) { c.Members[0].Banned = true },
		"invitations without member":    func(c *Contents) { c.Members = nil },
		"changed in the future":         func(c *Contents) { c.Changed = 10 },
		"a motion of the future":        func(c *Contents) { c.Last = 0 },
		"motions out of order":          func(c *Contents) { c.Motions = append(c.Motions, c.Motions[0]) },
		"a motion of no kind":           func(c *Contents) { c.Motions[0].Kind = 0 },
		"a motion of no state":          func(c *Contents) { c.Motions[0].State = lastMotionState + 1 },
		"a motion about nobody":         func(c *Contents) { c.Motions[0].Site = "" },
		"a policy about somebody":       func(c *Contents) { c.Motions[0].Params = command.DefaultParams() },
		"two votes of one site":         func(c *Contents) { c.Motions[0].Votes = []Vote{{"a", true}, {"a", true}} },
		"two invitations of one key":    func(c *Contents) { c.Invitations = append(c.Invitations, c.Invitations[0]) },
		"a claim by nobody":             func(c *Contents) { c.Invitations[0].Claimant = signature.Key{} },
		"an open claim":                 func(c *Contents) { c.Invitations[0].State = Open },
		"an invitation of no state":     func(c *Contents) { c.Invitations[0].State = lastInvitationState + 1 },
		"an invitation of no motion":    func(c *Contents) { c.Invitations[0].Motion = 2 },
		"a gossip key of no generation": func(c *Contents) { c.Gossip.Key = [32]byte{1} },
		"no gossip key":                 func(c *Contents) { c.Gossip.Generation = 1 },
		"nobody's gossip key exposed":   func(c *Contents) { c.Gossip.Exposed = true },
		"too many members": func(c *Contents) {
			for n := range byte(9) {
				c.Members = append(c.Members, &Member{Site: "m" + string('a'+rune(n)), Key: key(9 + n)})
			}
		},
	} {
		c := good()
		spoil(&c)
		if _, err := Restore(RealBounds(10), c, 9); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
}
