package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/identity"
)

// awaitShutOut waits until a broker's copy of the state has some words of why; none: it is not shut out.
func awaitShutOut(t *testing.T, s *testSite, words ...string) {
	t.Helper()
	s.await(t, func(st *fsm.State) bool {
		why := shutOut(st, s.name, s.cfg.Node)
		for _, w := range words {
			if !strings.Contains(why, w) {
				return false
			}
		}
		return (why == "") == (len(words) == 0)
	})
	why, err := s.Status(false).ShutOut, s.Ready()
	told := errors.Is(err, node.ErrNotReady) && strings.Contains(err.Error(), why)
	if why == "" != (len(words) == 0) || why != "" && !told {
		t.Errorf("status %q, ready: %v", why, err)
	}
}

// A site that was expelled hears in its status, and when it is asked whether it is ready, by which motion, of whom, and
// what to do. Once it is let in again nothing of that is left.
func TestExpelledSiteSaysByWhichMotion(t *testing.T) {
	sites := startMembers(t, 3)
	m, err := sites[0].Propose(t.Context(), &command.Motion{What: command.MotionBan, Site: "site-3"})
	if err != nil {
		t.Fatal(err)
	}
	sites[1].agree(t, "site-3")
	awaitShutOut(t, sites[2], fmt.Sprintf("expelled site site-3 by motion %d", m.Number), "of site-1; for it: site-1 site-2",
		"cloudshare unban site-3")
	if _, err = sites[0].Propose(t.Context(), &command.Motion{What: command.MotionUnban, Site: "site-3"}); err != nil {
		t.Fatal(err)
	}
	sites[1].agree(t, "site-3")
	awaitShutOut(t, sites[2])
}

// A broker that signs by a key which its site has replaced is not taken at its word any more, as leader neither: it
// says so, and that a restart is needed.
func TestReplacedKeyIsTold(t *testing.T) {
	sites := startMembers(t, 2)
	for _, s := range sites {
		if s.log.Status().Lead != s.name {
			continue
		}
		next := identity.FromSeed([32]byte{7})
		c := &command.Rekey{Site: s.name, Key: signature.Key(next.Public())}
		c.By = signature.Signature(s.key.Sign(command.SignedKey, c.Signed([16]byte{9})...))
		c.ByNew = signature.Signature(next.Sign(command.SignedKey, c.Signed([16]byte{9})...))
		if _, err := s.Rekey(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		awaitShutOut(t, s, "has another key since (generation 1)", "restart it with the new key")
	}
}
