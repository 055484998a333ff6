package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
)

// Invite invites a site, and returns the text that lets it in, once, within a time. Nobody keeps the text: the
// federation knows the public half of the key in it alone.
func (b *Broker) Invite(ctx context.Context, site string, elector bool, within time.Duration) (node.Invited, error) {
	doing := "invite " + site
	text, v, err := b.invitationText(site)
	if err != nil {
		return node.Invited{}, fmt.Errorf("%s: %w", doing, err)
	}
	cmd := &command.Invite{
		Key: signature.Key(identity.FromSeed(v.Seed).Public()), Site: site, Elector: elector,
		ForMs: within.Milliseconds(),
	}
	if err = cmd.Validate(); err != nil {
		return node.Invited{}, &node.RosterError{Doing: doing, Code: command.OutOfRange, Why: err.Error()}
	}
	if _, err = b.decide(ctx, doing, cmd); err != nil {
		if errors.Is(err, node.ErrNoQuorum) {
			err = fmt.Errorf("%w; its text is lost: revoke it then, and invite again", err)
		}
		return node.Invited{}, err
	}
	made, err := b.Reader.Invitation(cmd.Key)
	return node.Invited{Invitation: made, Token: text, Addresses: v.Addresses}, err
}

// Reinvite returns a text by which a member comes back on an empty disk: whoever holds the key that the roster has, and
// nobody else. The federation need not know of it, since it lets nobody in.
func (b *Broker) Reinvite(site string) (node.Invited, error) {
	m, err := b.Member(site)
	if err != nil {
		return node.Invited{}, err
	}
	if m.Banned {
		return node.Invited{}, &node.RosterError{Doing: "invite " + site + " again", Code: command.Banned}
	}
	text, v, err := b.invitationText(site)
	if err != nil {
		return node.Invited{}, fmt.Errorf("invite %s again: %w", site, err)
	}
	key := identity.FromSeed(v.Seed).Public().String()
	return node.Invited{Token: text, Addresses: v.Addresses, Invitation: node.Invitation{
		Site: site, By: b.cfg.Site, Elector: m.Elector, State: "admitted", Key: key, Claimant: m.Key,
	}}, nil
}

// invitationText makes a new key, and the text by which its holder reaches this broker.
func (b *Broker) invitationText(site string) (string, *invitation.Invitation, error) {
	v := &invitation.Invitation{Site: site, Inviter: b.cfg.Node}
	here := false
	b.cfg.Replica.View(func(s *fsm.State) {
		v.Federation = s.Federation()
		var own fsm.SiteView
		if own, here = s.Site(b.cfg.Site); here && own.Peer != "" {
			v.Addresses = []string{own.Peer}
		}
	})
	if !here {
		return "", nil, fmt.Errorf("this site has not registered yet: %w", node.ErrNotReady)
	}
	_, _ = rand.Read(v.Seed[:]) // never fails
	text, err := v.Text()
	if err != nil {
		return "", nil, &node.RosterError{Doing: "write the invitation", Code: command.OutOfRange, Why: err.Error()}
	}
	return text, v, nil
}

// Revoke ends the invitations of a site that still let somebody in, and returns them as they are then.
func (b *Broker) Revoke(ctx context.Context, site string) ([]node.Invitation, error) {
	var ended []node.Invitation
	for _, v := range b.Invitations() {
		if v.Site != site || v.State != "open" && v.State != "claimed" {
			continue
		}
		key, err := identity.ParsePublic(v.Key)
		if err != nil {
			return ended, err
		}
		if _, err = b.decide(ctx, "revoke the invitation of "+site, &command.Revoke{Key: signature.Key(key)}); err != nil {
			return ended, err
		}
		if v, err = b.Reader.Invitation(signature.Key(key)); err == nil {
			ended = append(ended, v)
		}
	}
	if ended == nil {
		return nil, fmt.Errorf("%w: no invitation of %s is open: cloudshare invitations shows those that were made",
			node.ErrNotFound, site)
	}
	return ended, nil
}

// Propose makes a motion, and returns it as it stands then: it may have passed.
func (b *Broker) Propose(ctx context.Context, c *command.Motion) (node.Motion, error) {
	doing := (&node.Motion{Kind: c.What.String(), Site: c.Site}).About()
	if err := c.Validate(); err != nil {
		return node.Motion{}, &node.RosterError{Doing: doing, Code: command.OutOfRange, Why: err.Error()}
	}
	if c.What == command.MotionPolicy {
		if err := b.canSetParams(*c.Params); err != nil {
			return node.Motion{}, err
		}
	}
	if c.What == command.MotionBan {
		if err := b.canExpel(c.Site); err != nil {
			return node.Motion{}, err
		}
	}
	r, err := b.decide(ctx, doing, c)
	if err != nil {
		return node.Motion{}, err
	}
	return b.Motion(r.Motion)
}

// Vote votes on a motion, which is named by its number or by the site that it alone is about, and returns it as it
// stands then.
func (b *Broker) Vote(ctx context.Context, motion string, yes bool) (node.Motion, error) {
	number, err := b.motionNumber(motion)
	if err != nil {
		return node.Motion{}, err
	}
	if m, unknown := b.Motion(number); unknown == nil && yes && m.State == "open" && m.Kind == command.MotionBan.String() {
		if err = b.canExpel(m.Site); err != nil {
			return node.Motion{}, err
		}
	}
	if _, err = b.decide(ctx, fmt.Sprintf("vote on motion %d", number), &command.Vote{Motion: number, Yes: yes}); err != nil {
		return node.Motion{}, err
	}
	return b.Motion(number)
}

// motionNumber finds the motion that somebody names.
func (b *Broker) motionNumber(name string) (uint64, error) {
	if number, err := strconv.ParseUint(name, 10, 64); err == nil && number > 0 {
		return number, nil
	}
	var about []node.Motion
	for _, m := range b.Motions() {
		if m.Site == name && m.State == "open" {
			about = append(about, m)
		}
	}
	switch len(about) {
	case 0:
		return 0, fmt.Errorf("%w: no open motion is about %.80q: cloudshare motions shows those that are",
			node.ErrNotFound, name)
	case 1:
		return about[0].Number, nil
	}
	return 0, &node.MotionChoiceError{Site: name, Motions: about}
}

// Rekey passes on the replacement of a site's key, which proves itself, and returns the site as it is then.
func (b *Broker) Rekey(ctx context.Context, c *command.Rekey) (node.Member, error) {
	if err := c.Validate(); err != nil {
		return node.Member{}, &node.RosterError{Doing: "replace a key", Code: command.OutOfRange, Why: err.Error()}
	}
	if _, err := b.decide(ctx, "replace the key of "+c.Site, c); err != nil {
		return node.Member{}, err
	}
	return b.Member(c.Site)
}

// busyTries is how often a command is ordered that its entry had no room for.
const busyTries = 4

// decide has a command about the members ordered.
func (b *Broker) decide(ctx context.Context, doing string, body command.Body) (r command.Result, err error) {
	for range busyTries {
		if r, err = b.order(ctx, doing, body); err != nil || r.Code != command.Busy {
			break
		}
	}
	if err != nil || r.Code == command.OK {
		return r, err
	}
	if m, ok := body.(*command.Motion); ok && m.What == command.MotionPolicy && badParams(r.Code) {
		return r, fmt.Errorf("set policy: %w: %s", node.ErrBadParams, r.Code)
	}
	return r, &node.RosterError{Doing: doing, Code: r.Code, Why: remedyOf(body, r.Code)}
}

func badParams(c command.Code) bool {
	return c == command.BadParams || c == command.PolicySites || c == command.OutOfRange
}

// remedyOf words a refusal that means something else here than elsewhere; "" = it does not.
func remedyOf(body command.Body, code command.Code) string {
	switch body.(type) {
	case *command.Invite:
		switch code { //nolint:exhaustive // the others speak for themselves
		case command.NameTaken:
			return "a member has, or had, that name: choose another one, or give the name to another key (cloudshare rebind)"
		case command.OutOfRange:
			return "the federation has as many members as it may"
		case command.TooManyMotions:
			return "too many invitations are open: revoke some (cloudshare invitations)"
		}
	case *command.Motion:
		switch code { //nolint:exhaustive // likewise
		case command.UnknownSite:
			return "no such member: cloudshare members shows who is one"
		case command.OutOfRange:
			return "there are as many electors as there may be: take another site's vote first"
		case command.NotOwner:
			return "the site is here: only one that is away can be forgotten"
		}
	}
	return ""
}
