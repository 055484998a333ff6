package broker

import (
	"context"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
)

// Enroll has a command ordered that carries its own proof, an Admit or a Rekey, for somebody who may be no member yet.
// It returns its code once this broker's state has it.
func (b *Broker) Enroll(ctx context.Context, body command.Body) (command.Code, error) {
	r, err := b.order(ctx, "enroll", body)
	return r.Code, err
}

// Waiting returns the electors who have not agreed to an invitation.
func (b *Broker) Waiting(a *command.Admit) (sites []string) {
	b.cfg.Replica.View(func(s *fsm.State) {
		c := s.Roster()
		at := slices.IndexFunc(c.Invitations, func(i *roster.Invitation) bool { return i.Key == a.Invitation })
		if at < 0 {
			return
		}
		m := slices.IndexFunc(c.Motions, func(m *roster.Motion) bool { return m.Number == c.Invitations[at].Motion })
		if m < 0 {
			return
		}
		for _, site := range s.Electors() {
			if !slices.Contains(c.Motions[m].Votes, roster.Vote{Site: site, Yes: true}) {
				sites = append(sites, site)
			}
		}
	})
	return sites
}
