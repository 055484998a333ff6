package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/identity"
)

// fakeDate is when all happened that the fake's members have done.
var fakeDate = time.UnixMilli(1_000_000).UTC()

func fakeKey(n byte) string { return identity.FromSeed([32]byte{n}).Public().String() }

// Members implements Broker: site-1 and site-2 decide.
func (f *fakeBroker) Members() []node.Member {
	return []node.Member{
		{
			Site: "site-1", Key: fakeKey(1), Node: "01", Elector: true, Deciding: true, Since: fakeDate,
			Recovery: fakeKey(9), Generation: 1,
		},
		{Site: "site-2", Key: fakeKey(2), Node: "02", Elector: true, Deciding: true, Since: fakeDate},
		{Site: "site-3", Key: fakeKey(3), Node: "03", Banned: true},
	}
}

// Member implements Broker.
func (f *fakeBroker) Member(site string) (node.Member, error) {
	for _, m := range f.Members() {
		if m.Site == site {
			return m, nil
		}
	}
	return node.Member{}, fmt.Errorf("member %s: %w", site, node.ErrNotFound)
}

// invitation is the one that is open.
func (f *fakeBroker) invitation() node.Invitation {
	return node.Invitation{
		Site: "site-4", By: "site-1", Elector: true, State: "open", Until: fakeDate.Add(time.Hour), Key: fakeKey(4), Motion: 7,
		Waiting: []string{"site-2"}, Needs: 1,
	}
}

// Invitations implements Broker.
func (f *fakeBroker) Invitations() []node.Invitation { return []node.Invitation{f.invitation()} }

// Invite implements Broker.
func (f *fakeBroker) Invite(_ context.Context, site string, elector bool, within time.Duration) (node.Invited, error) {
	if _, err := f.Member(site); err == nil {
		return node.Invited{}, &node.RosterError{Doing: "invite " + site, Code: command.NameTaken}
	}
	v := f.invitation()
	v.Site, v.Elector, v.Until = site, elector, fakeDate.Add(within)
	return node.Invited{Invitation: v, Token: "csi_secret", Addresses: []string{"127.0.0.1:2"}}, nil
}

// Reinvite implements Broker.
func (f *fakeBroker) Reinvite(site string) (node.Invited, error) {
	m, err := f.Member(site)
	return node.Invited{Token: "csi_again", Addresses: []string{"127.0.0.1:2"}, Invitation: node.Invitation{
		Site: site, By: "site-1", State: "admitted", Claimant: m.Key,
	}}, err
}

// Revoke implements Broker.
func (f *fakeBroker) Revoke(_ context.Context, site string) ([]node.Invitation, error) {
	v := f.invitation()
	if v.Site != site {
		return nil, fmt.Errorf("%w: no invitation of %s is open", node.ErrNotFound, site)
	}
	v.State, v.Waiting, v.Needs = "revoked", nil, 0
	return []node.Invitation{v}, nil
}

// Motions implements Broker.
func (f *fakeBroker) Motions() []node.Motion {
	params := f.Params()
	return []node.Motion{
		{
			Number: 6, Kind: "policy", By: "site-2", State: "rejected", Params: &params, Opened: fakeDate, Until: fakeDate,
			Ended: fakeDate, No: 2, Electors: 2,
		},
		f.motion(7, "admit", "site-4"),
	}
}

// motion is one that waits for site-2.
func (f *fakeBroker) motion(number uint64, kind, site string) node.Motion {
	return node.Motion{
		Number: number, Kind: kind, Site: site, By: "site-1", State: "open", Opened: fakeDate, Until: fakeDate.Add(time.Hour),
		Votes: []node.Vote{{Site: "site-1", Yes: true}}, Yes: 1, Electors: 2, Missing: []string{"site-2"},
	}
}

// Propose implements Broker.
func (f *fakeBroker) Propose(_ context.Context, c *command.Motion) (node.Motion, error) {
	if _, err := f.Member(c.Site); err != nil && c.What != command.MotionPolicy {
		return node.Motion{}, &node.RosterError{Doing: c.What.String() + " " + c.Site, Code: command.UnknownSite}
	}
	m := f.motion(8, c.What.String(), c.Site)
	m.Params = c.Params
	if c.What == command.MotionRebind {
		m.Key = identity.Public(c.Key).String()
	}
	return m, nil
}

// Vote implements Broker.
func (f *fakeBroker) Vote(_ context.Context, motion string, yes bool) (node.Motion, error) {
	switch motion {
	case "7", "site-4":
		m := f.motion(7, "admit", "site-4")
		m.Votes, m.Missing, m.Ended = append(m.Votes, node.Vote{Site: "site-2", Yes: yes}), nil, fakeDate
		if m.State = "rejected"; yes {
			m.State, m.Yes = "passed", 2
		}
		return m, nil
	case "6":
		return node.Motion{}, &node.RosterError{Doing: "vote on motion 6", Code: command.MotionClosed}
	case "site-2":
		return node.Motion{}, &node.MotionChoiceError{Site: motion, Motions: []node.Motion{
			f.motion(8, "ban", motion), f.motion(9, "elector", motion),
		}}
	}
	return node.Motion{}, fmt.Errorf("%w: no open motion is about %.80q", node.ErrNotFound, motion)
}

// Rekey implements Broker.
func (f *fakeBroker) Rekey(_ context.Context, c *command.Rekey) (node.Member, error) {
	m, err := f.Member(c.Site)
	m.Key, m.Generation = identity.Public(c.Key).String(), c.Generation+1
	return m, err
}

// memberRequests are those of TestAnswers about members.
var memberRequests = []request{
	{"GET", "/v1/members", "", "", nil},
	{"GET", "/v1/invitations", "", "", nil},
	{"GET", "/v1/motions", "", "", nil},
	{"GET", "/v1/motions?state=open", "", "", nil},
	{"GET", "/v1/motions?state=passed", "", "", nil},
	{"GET", "/v1/motions?state=asleep", "", "", nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5","vote":false,"for":"48h"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-2"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"Site 2"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5","for":"1y"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5","for":"721h"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5","vote":"yes"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5","vote":null}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-5","site":"site-6"}`, nil},
	{"POST", "/v1/invitations", js, `{"sites":"site-5"}`, nil},
	{"POST", "/v1/invitations", js, `["site-5"]`, nil},
	{"POST", "/v1/invitations", js, `{"site":`, nil},
	{"POST", "/v1/invitations", js, ``, nil},
	{"POST", "/v1/invitations", "text/plain", `{"site":"site-5"}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-2","again":true}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-9","again":true}`, nil},
	{"POST", "/v1/invitations", js, `{"site":"site-2","again":true,"vote":true}`, nil},
	{"DELETE", "/v1/invitations/site-4", "", "", nil},
	{"DELETE", "/v1/invitations/site-9", "", "", nil},
	{"POST", "/v1/motions", js, `{"what":"ban","site":"site-2"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"ban","site":"site-9"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"ban","site":"site-2","key":"` + fakeKey(5) + `"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"ban","site":"site-2","params":{}}`, nil},
	{"POST", "/v1/motions", js, `{"what":"ban"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"admit","site":"site-9"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"rebind","site":"site-2","key":"` + fakeKey(5) + `"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"rebind","site":"site-2","key":"csk_x"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"rebind","site":"site-2"}`, nil},
	{"POST", "/v1/motions", js, `{"what":"policy","params":{"policy":"CE"}}`, nil},
	{"POST", "/v1/motions", js, `{"what":"policy","params":{"polcy":"CE"}}`, nil},
	{"POST", "/v1/motions", js, `{"what":"policy","site":"site-2"}`, nil},
	{"PUT", "/v1/motions/7/vote", js, `{"yes":true}`, nil},
	{"PUT", "/v1/motions/site-4/vote", js, `{"yes":false}`, nil},
	{"PUT", "/v1/motions/6/vote", js, `{"yes":true}`, nil},
	{"PUT", "/v1/motions/site-2/vote", js, `{"yes":true}`, nil},
	{"PUT", "/v1/motions/site-9/vote", js, `{"yes":true}`, nil},
	{"PUT", "/v1/motions/7/vote", js, `{}`, nil},
	{"PUT", "/v1/policy", js, `{"departure_ms":1}`, nil},
	{"POST", "/v1/members/site-2/key", js, rekeyBody("site-2"), nil},
	{"POST", "/v1/members/site-1/key", js, rekeyBody("site-2"), nil},
	{"POST", "/v1/members/site-2/key", js, `{"rekey":"AAAA"}`, nil},
	{"POST", "/v1/members/site-2/key", js, `{"rekey":"?"}`, nil},
}

// rekeyBody replaces a site's key; the fake checks no signature.
func rekeyBody(site string) string {
	text := command.Append(nil, command.Command{ID: command.ID{Site: site}, Body: &command.Rekey{
		Site: site, Key: signature.Key{1}, Generation: 3,
	}})
	return fmt.Sprintf(`{"rekey":%q}`, base64.StdEncoding.EncodeToString(text))
}
