package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

func TestExpelStrands(t *testing.T) {
	for voters, want := range map[string]bool{
		"a": true, "a b": true, "a b c": false, "a b c d": false, "b": false, "": false,
	} {
		if got := expelStrands("a", strings.Fields(voters), "a"); got != want {
			t.Errorf("a leads, of %q: %v, want %v", voters, got, want)
		}
	}
	if expelStrands("b", []string{"a", "b"}, "a") {
		t.Error("b leads, and could take a out of the group")
	}
}

// TestLeaderIsNotExpelledTooEarly: neither a motion nor a vote may leave the log without a quorum.
func TestLeaderIsNotExpelledTooEarly(t *testing.T) {
	for n, want := range map[int]error{2: node.ErrNotReady, 3: nil} {
		sites := startMembers(t, n)
		lead := sites[0].log.Status().Lead
		other := slices.IndexFunc(sites, func(s *testSite) bool { return s.name != lead })
		_, err := sites[other].Propose(t.Context(), &command.Motion{What: command.MotionBan, Site: lead})
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "no quorum") {
			t.Errorf("the leader of %d: %v, want %v", n, err, want)
		}
		follower := &command.Motion{What: command.MotionBan, Site: sites[other].name}
		if _, err := sites[(other+1)%n].Propose(t.Context(), follower); err != nil {
			t.Errorf("a follower of %d: %v", n, err)
		}
	}
}
