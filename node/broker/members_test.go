package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/mem"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/sched"
)

// startMembers is startSites of a federation with a roster: site-1 founds it and lets the others in, with a vote each.
func startMembers(t *testing.T, n int) []*testSite {
	t.Helper()
	begin := time.Now()
	group := mem.New(func() int64 { return time.Since(begin).Milliseconds() })
	var sites []*testSite
	for i := range n {
		key := identity.FromSeed([32]byte{1, byte(i)})
		s := &testSite{
			name: "site-" + string(rune('1'+i)), group: group, dir: t.TempDir(), handler: newFakeHandler(1),
			kind: func(h *fakeHandler) executor.Handler { return fencedFake{h} }, key: &key,
		}
		if i > 0 {
			sites[0].letIn(t, s, sites[1:]...)
		}
		s.start(t)
		t.Cleanup(func() { s.stop(t) })
		sites = append(sites, s)
	}
	return sites
}

// letIn invites a site, has the others agree, and uses the invitation.
func (s *testSite) letIn(t *testing.T, joiner *testSite, others ...*testSite) {
	t.Helper()
	v, err := s.Invite(t.Context(), joiner.name, true, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range others {
		if m, err := s.Motion(v.Motion); err != nil || m.State != "open" {
			break
		}
		o.agree(t, joiner.name)
	}
	s.admit(t, v.Token, *joiner.key, command.OK)
}

// agree approves what is open about a site.
func (s *testSite) agree(t *testing.T, site string) node.Motion {
	t.Helper()
	m, err := s.Vote(t.Context(), site, true)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// admit uses an invitation through this site.
func (s *testSite) admit(t *testing.T, token string, key identity.Key, want command.Code) {
	t.Helper()
	v, err := invitation.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.order(t.Context(), "admit", enroll.Admission(&v, key)); err != nil || r.Code != want {
		t.Fatalf("admit: %v, %v; want %v", r.Code, err, want)
	}
}

// refused checks that the roster refuses something, and returns in which words.
func refused(t *testing.T, err error, want command.Code) string {
	t.Helper()
	var why *node.RosterError
	if !errors.As(err, &why) || why.Code != want || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v, want %v", err, want)
	}
	return err.Error()
}

// A founder alone lets a site in; from then on both must agree, and each sees for whom the other waits.
func TestMembersDecideTogether(t *testing.T) {
	sites := startMembers(t, 2)
	a, b := sites[0], sites[1]
	members := b.Members()
	if len(members) != 2 || members[1].Site != "site-2" || !members[1].Deciding || members[1].Banned ||
		members[1].Key != b.key.Public().String() || members[1].Recovery != "" || members[1].Since.IsZero() {
		t.Fatalf("%+v", members)
	}
	v, err := a.Invite(t.Context(), "site-3", false, time.Hour)
	if err != nil || v.State != "open" || v.Elector || !slices.Equal(v.Waiting, []string{"site-2"}) ||
		!slices.Equal(v.Addresses, []string{"127.0.0.1:2"}) {
		t.Fatalf("%+v, %v", v, err)
	}
	key := identity.FromSeed([32]byte{9})
	a.admit(t, v.Token, key, command.Pending)
	if m, err := a.Motion(v.Motion); err != nil || m.Key != key.Public().String() || m.Needs() != 1 ||
		!slices.Equal(m.Missing, []string{"site-2"}) || m.Ended != (time.Time{}) {
		t.Errorf("%+v, %v", m, err)
	}
	if m := b.agree(t, "site-3"); m.State != "passed" || m.Missing != nil || m.Yes != 2 || m.Electors != 2 || m.Ended.IsZero() {
		t.Errorf("%+v", m)
	}
	if m, err := b.Member("site-3"); err != nil || m.Elector || m.Key != key.Public().String() {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := b.Vote(t.Context(), "site-3", true); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("a vote on nothing: %v", err)
	}
	_, err = a.Invite(t.Context(), "site-3", true, time.Hour)
	if why := refused(t, err, command.NameTaken); !strings.Contains(why, "rebind") {
		t.Error(why)
	}
	_, err = a.Invite(t.Context(), "site-4", true, 31*24*time.Hour)
	refused(t, err, command.OutOfRange)
	_, err = a.Invite(t.Context(), "Site_4", true, time.Hour)
	refused(t, err, command.OutOfRange)
}

// A member that lost its disk, not its key, comes back by a text that lets nobody else in.
func TestReinvite(t *testing.T) {
	sites := startMembers(t, 2)
	a, b := sites[0], sites[1]
	v, err := a.Reinvite("site-2")
	if err != nil || v.Motion != 0 || len(a.Invitations()) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	a.admit(t, v.Token, identity.FromSeed([32]byte{9}), command.UnknownInvitation)
	a.admit(t, v.Token, *b.key, command.OK)
	if _, err = a.Reinvite("site-3"); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("a stranger: %v", err)
	}
}

// Whoever has invited takes it back; the text is of no use then.
func TestRevoke(t *testing.T) {
	a := startMembers(t, 1)[0]
	v, err := a.Invite(t.Context(), "site-2", true, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := a.Revoke(t.Context(), "site-2")
	if err != nil || len(ended) != 1 || ended[0].State != "revoked" {
		t.Fatalf("%+v, %v", ended, err)
	}
	a.admit(t, v.Token, identity.FromSeed([32]byte{9}), command.InvitationRevoked)
	if _, err = a.Revoke(t.Context(), "site-2"); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
}

// The policy is what more than half of the electors want.
func TestPolicyIsDecided(t *testing.T) {
	sites := startMembers(t, 2)
	a, b := sites[0], sites[1]
	p := a.Params()
	if m, err := a.SetParams(t.Context(), p); m != nil || err != nil {
		t.Errorf("nothing to decide: %+v, %v", m, err)
	}
	p.Policy = sched.CE
	m, err := a.SetParams(t.Context(), p)
	if err != nil || m == nil || m.Params == nil || m.Params.Policy != sched.CE ||
		!slices.Equal(m.Missing, []string{"site-2"}) {
		t.Fatalf("%+v, %v", m, err)
	}
	if a.Params().Policy == sched.CE {
		t.Error("one of two has set the policy")
	}
	if m, err := b.SetParams(t.Context(), p); m != nil || err != nil { // who wants the same agrees
		t.Errorf("%+v, %v", m, err)
	}
	if got := b.Params().Policy; got != sched.CE {
		t.Errorf("the policy is %s", got)
	}
	p.LeaseMs = 1
	if _, err := a.SetParams(t.Context(), p); !errors.Is(err, node.ErrBadParams) {
		t.Errorf("a lease: %v", err)
	}
}

// What cannot be proposed says why, and what to do; what can is voted on by number where a name is not enough.
func TestPropose(t *testing.T) {
	sites := startMembers(t, 3)
	a, b, c := sites[0], sites[1], sites[2]
	for _, p := range []struct {
		motion command.Motion
		code   command.Code
		says   string
	}{
		{command.Motion{What: command.MotionBan, Site: "site-9"}, command.UnknownSite, "cloudshare members"},
		{command.Motion{What: command.MotionUnban, Site: "site-2"}, command.AlreadySo, "already"},
		{command.Motion{What: command.MotionForget, Site: "site-2"}, command.NotOwner, "only one that is away"},
		{command.Motion{What: command.MotionRebind, Site: "site-2", Key: signature.Key(c.key.Public())}, command.KeyTaken, "another"},
		{command.Motion{What: command.MotionAdmit, Site: "site-4"}, command.OutOfRange, "motion"},
		{command.Motion{What: command.MotionRebind, Site: "site-2"}, command.OutOfRange, "rebind"},
	} {
		_, err := a.Propose(t.Context(), &p.motion)
		if why := refused(t, err, p.code); !strings.Contains(why, p.says) {
			t.Errorf("%+v: %s", p.motion, why)
		}
	}
	ban, err := a.Propose(t.Context(), &command.Motion{What: command.MotionBan, Site: "site-3"})
	if err != nil || !slices.Equal(ban.Missing, []string{"site-2", "site-3"}) || ban.Needs() != 1 {
		t.Fatalf("%+v, %v", ban, err)
	}
	if _, err = c.Propose(t.Context(), &command.Motion{What: command.MotionNoElector, Site: "site-3"}); err != nil {
		t.Fatal(err)
	}
	var choice *node.MotionChoiceError
	if _, err = b.Vote(t.Context(), "site-3", true); !errors.As(err, &choice) || len(choice.Motions) != 2 {
		t.Fatalf("%v", err)
	}
	if m, err := b.Vote(t.Context(), "3", false); err != nil || m.Number != ban.Number || m.No != 1 {
		t.Errorf("%+v, %v; motion %d is the ban", m, err, ban.Number)
	}
	_, err = b.Vote(t.Context(), "99", true)
	refused(t, err, command.UnknownMotion)
	if m, err := c.Vote(t.Context(), "3", false); err != nil || m.State != "rejected" {
		t.Errorf("%+v, %v", m, err)
	}
	_, err = b.Vote(t.Context(), "3", true)
	refused(t, err, command.MotionClosed)
}

// A key is replaced by who proves that it may be, whoever passes that on.
func TestRekey(t *testing.T) {
	sites := startMembers(t, 2)
	a, b := sites[0], sites[1]
	recovery := identity.FromSeed([32]byte{5})
	cmd := &command.Rekey{Site: "site-2", Key: signature.Key(b.key.Public()), Recovery: signature.Key(recovery.Public())}
	cmd.By = signature.Signature(a.key.Sign(command.SignedKey, cmd.Signed([16]byte{9})...))
	_, err := a.Rekey(t.Context(), cmd)
	refused(t, err, command.BadSignature)
	cmd.By = signature.Signature(b.key.Sign(command.SignedKey, cmd.Signed([16]byte{9})...))
	m, err := a.Rekey(t.Context(), cmd)
	if err != nil || m.Recovery != recovery.Public().String() || m.Generation != 1 || m.Key != b.key.Public().String() {
		t.Errorf("%+v, %v", m, err)
	}
	cmd.Recovery = signature.Key(identity.FromSeed([32]byte{6}).Public())
	_, err = a.Rekey(t.Context(), cmd)
	refused(t, err, command.OldKey)
}
