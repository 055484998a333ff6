package webtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

var _ web.Roster = (*Broker)(nil)

// Token is the text of every invitation of the fixture.
const Token = "csi_a-secret-that-is-shown-once"

// key returns the key of the n-th site, from 0.
func key(n int) string { return fmt.Sprintf("csk_%s%03d", strings.Repeat("abcdefgh", 6), n+1) }

// enroll has all sites be members: the first three decide, one that had a vote is away, one is expelled; one site is
// invited, and two things are to be decided.
func (b *Broker) enroll(sites int) {
	for i := range sites {
		b.MemberList = append(b.MemberList, node.Member{
			Site: site(i), Key: key(i), Elector: i < 4, Deciding: i < 3, Banned: i == 4, Since: b.Now.Add(-time.Hour),
		})
	}
	policy := command.DefaultParams()
	policy.Policy, policy.RetainJobs = "FAIRSHARE", 5
	b.InvitationList = []node.Invitation{
		{Site: site(1), By: site(0), Elector: true, State: "admitted", Until: b.Now, Claimant: key(1), Motion: 1},
		{
			Site: "guest", By: site(1), State: "claimed", Until: b.Now.Add(time.Hour), Claimant: key(900), Motion: 2,
			Waiting: []string{site(0), site(2)}, Needs: 1,
		},
	}
	b.MotionList = []node.Motion{
		{
			Number: 1, Kind: "admit", Site: site(1), By: site(0), State: "passed", Ended: b.Now, Electors: 1, Yes: 1,
			Votes: []node.Vote{{Site: site(0), Yes: true}},
		},
		b.motion(2, "admit", "guest", key(900), nil),
		b.motion(3, "policy", "", "", &policy),
	}
}

// motion is an open one by site-002.
func (b *Broker) motion(number uint64, kind, about, key string, params *command.Params) node.Motion {
	return node.Motion{
		Number: number, Kind: kind, Site: about, Key: key, Params: params, By: site(1), State: "open", Opened: b.Now,
		Until: b.Now.Add(time.Hour), Votes: []node.Vote{{Site: site(1), Yes: true}}, Yes: 1, Electors: 3,
		Missing: []string{site(0), site(2)},
	}
}

// Members implements web.Roster.
func (b *Broker) Members() []node.Member { return slices.Clone(b.MemberList) }

// Invitations implements web.Roster.
func (b *Broker) Invitations() []node.Invitation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.InvitationList)
}

// Motions implements web.Roster.
func (b *Broker) Motions() []node.Motion {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.MotionList)
}

// Invite implements web.Roster.
func (b *Broker) Invite(_ context.Context, site string, elector bool, within time.Duration) (node.Invited, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.MemberList, func(m node.Member) bool { return m.Site == site }) {
		return node.Invited{}, fmt.Errorf("invite %s: it is a member: %w", site, node.ErrEnded)
	}
	v := node.Invitation{
		Site: site, By: b.Site(), Elector: elector, State: "open", Until: b.Now.Add(within), Needs: 1,
		Waiting: []string{"site-002", "site-003"}, Motion: uint64(len(b.MotionList) + 1),
	}
	b.InvitationList = append(b.InvitationList, v)
	b.tell(fsm.Event{Kind: fsm.EventSiteOffered, Site: b.Site()})
	return node.Invited{Invitation: v, Token: Token, Addresses: []string{"10.0.0.1:7701"}}, nil
}

// Revoke implements web.Roster.
func (b *Broker) Revoke(_ context.Context, site string) ([]node.Invitation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.InvitationList {
		if v := &b.InvitationList[i]; v.Site == site && (v.State == "open" || v.State == "claimed") {
			v.State = "revoked"
			return []node.Invitation{*v}, nil
		}
	}
	return nil, fmt.Errorf("invitation of %s: %w", site, node.ErrNotFound)
}

// Propose implements web.Roster.
func (b *Broker) Propose(_ context.Context, c *command.Motion) (node.Motion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.motion(uint64(len(b.MotionList)+1), c.What.String(), c.Site, "", c.Params)
	m.By = site(0)
	b.MotionList = append(b.MotionList, m)
	b.tell(fsm.Event{Kind: fsm.EventSiteOffered, Site: site(0)})
	return m, nil
}

// Vote implements web.Roster: two of three pass a motion.
func (b *Broker) Vote(_ context.Context, motion string, yes bool) (node.Motion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	number, err := strconv.Atoi(motion)
	if err != nil || number < 1 || number > len(b.MotionList) {
		return node.Motion{}, fmt.Errorf("motion %.20s: %w", motion, node.ErrNotFound)
	}
	m := &b.MotionList[number-1]
	if m.State != "open" {
		return node.Motion{}, fmt.Errorf("motion %d: %w", number, node.ErrEnded)
	}
	m.Votes = append(slices.Clone(m.Votes), node.Vote{Site: site(0), Yes: yes})
	if m.Missing = []string{site(2)}; yes {
		m.State, m.Yes, m.Ended, m.Missing = "passed", 2, b.Now, nil
	}
	b.tell(fsm.Event{Kind: fsm.EventSiteOffered, Site: site(0)})
	return *m, nil
}
