package broker

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// shutOut returns why the federation takes nothing that this site's broker says, as its copy of the state has it, with
// what to do; "": it takes it. signs is the node of the key by which the broker signs.
func shutOut(s *fsm.State, site string, signs [16]byte) string {
	m, known := s.Member(site)
	switch {
	case !known:
		return ""
	case m.Banned:
		return fmt.Sprintf("the electors have expelled site %s%s: ask them to take it back (`cloudshare unban %[1]s` at one of "+
			"them); this broker waits, and registers again by itself", site, byMotion(s, site))
	case m.Key.Node() != signs:
		return fmt.Sprintf("site %s has another key since (generation %d), and nobody takes what this broker signs by the one of "+
			"before: restart it with the new key (`key.next` or `key` in its data_dir); if nobody at %[1]s replaced it, the electors "+
			"did (cloudshare motions)", site, m.Generation)
	}
	return ""
}

// byMotion names the motion that expelled a site, if it is still kept.
func byMotion(s *fsm.State, site string) string {
	kept := s.Roster()
	m := kept.Expulsion(site)
	if m == nil {
		return ""
	}
	var votes []string
	for _, v := range m.Votes {
		if v.Yes {
			votes = append(votes, v.Site)
		}
	}
	return fmt.Sprintf(" by motion %d, of %s; for it: %s", m.Number, m.By, strings.Join(votes, " "))
}

// byState is shutOut of the state of now.
func (g *registrar) byState() (why string) {
	g.cfg.Replica.View(func(s *fsm.State) { why = shutOut(s, g.cfg.Site, g.cfg.Node) })
	return why
}

// shutOut returns why the others take nothing that this broker says, "" = they do, as far as it knows.
func (g *registrar) shutOut() string {
	why := g.byState()
	if g.cfg.Refused != nil {
		why = cmp.Or(why, g.cfg.Refused())
	}
	return why
}

// refused is shutOut as the error of not being ready, or nil.
func (g *registrar) refused() error {
	if why := g.shutOut(); why != "" {
		return fmt.Errorf("%s: %w", why, node.ErrNotReady)
	}
	return nil
}

// watchStanding logs when the state stops taking what this broker says, and when it takes it again.
func (g *registrar) watchStanding() {
	for why := ""; ; {
		changed := func(s *fsm.State) bool { return shutOut(s, g.cfg.Site, g.cfg.Node) != why }
		if g.cfg.Replica.Await(g.ctx, changed) != nil {
			return
		}
		why = g.byState()
		switch leads := g.order.Status().Lead == g.cfg.Site; {
		case why == "":
			g.log.Info().Msg("the federation takes again what this broker says")
		case leads:
			g.log.Error().Str("reason", why).Msg("this broker leads, and the federation takes nothing that it says, as leader neither: " +
				"no site is declared lost until another one leads; stop this broker, and those that are left elect one")
		default:
			g.log.Error().Str("reason", why).Msg("the federation takes nothing that this broker says")
		}
	}
}
