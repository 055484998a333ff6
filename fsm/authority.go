package fsm

import (
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Who may say what, in a federation with a roster (a federation without one, as in simulations, believes the log);
// test/attacks/DESIGN.md has a row for each command, with the test that forges it:
//
//	any command                        the site that it names, by the signature of its bundle
//	Genesis                            the founder whose key it names
//	Register                           the site, after the incarnation that it names
//	what a site says of attempts, jobs, machines and itself      that site (NotOwner, UnknownJob … otherwise)
//	Deliver                            the owner of all jobs that it names (NotOwner otherwise)
//	Release, Prioritize                the owner: it can name no other site's jobs
//	Lead                               whoever orders the term's first entries
//	SiteLost, Suspect, Raise, GossipKey                          the leader of the term
//	Invite, Motion, Vote, Revoke       members, electors (fsm/roster)
//	Admit, Rekey                       who holds the keys: they carry their own proofs
//	SetParams, Forget of others        nobody: the electors, by a motion
//	Recover                            no log: only the tool that begins an epoch
//
// A bundle is judged once, by the key that its site has at the bundle's first command. So it is decided alike
// everywhere, whoever ordered the entry and whatever was verified before.

// authors walks through the bundles of a batch.
type authors struct {
	bundles []command.Bundle
	done    int // commands of bundles[0]
	judged  bool
	code    command.Code // what bundles[0] was judged, if judged
}

// next goes on to the bundle of the next command.
func (a *authors) next() {
	if len(a.bundles) > 0 && a.done == a.bundles[0].Commands {
		*a = authors{bundles: a.bundles[1:]}
	}
	a.done++
}

// authorize says whether the next command is its site's word, by the bundle in which it stands.
func (s *fleet) authorize(by *authors, c *command.Command) command.Code {
	g, isGenesis := c.Body.(*command.Genesis)
	switch {
	case s.founded == 0 && !isGenesis:
		return command.NotFounded
	case s.founded == 0 && g.Founder == (signature.Key{}), s.founded != 0 && !s.roster.Founded():
		return command.OK // there is no roster, or it will not be one
	case c.Body.Kind() == command.KindRecover:
		return command.OK // nobody can sign for those who lost their quorum; see recover
	case noAuthorship:
		return command.OK
	case len(by.bundles) == 0 || by.bundles[0].Site != c.ID.Site:
		return command.NotSigned
	case !by.judged:
		by.judged, by.code = true, s.judge(&by.bundles[0], g)
	}
	return by.code
}

// judge says whether a bundle is its site's: by the founder's key if it founds the federation, else by the roster's.
func (s *fleet) judge(b *command.Bundle, g *command.Genesis) command.Code {
	m, known := s.roster.Member(b.Site)
	var right bool
	switch {
	case s.founded == 0:
		right = b.IsBy(g.Federation, g.Founder)
	case !known:
		return command.NotMember
	default:
		right = b.IsBy(s.federation, m.Key)
	}
	if !right {
		return command.NotSigned
	}
	return command.OK
}

// lead executes a Lead: the first one of a term says who leads it. Only who orders entries of a term can have one
// ordered before the leader's own, which stands in the term's first entry.
func (s *fleet) lead(site string, c *command.Lead) command.Code {
	m, _ := s.roster.Member(site)
	switch {
	case m.Banned:
		return command.Banned
	case c.Term != s.term:
		return command.OldTerm
	case s.leader == "":
		s.leader = strings.Clone(site)
	case s.leader != site:
		return command.NotLeader
	}
	return command.OK
}

// isLeader reports whether a site may say what only the leader of the term says.
func (s *fleet) isLeader(x *site) bool { return !s.roster.Founded() || s.leader == x.name }

// Leader returns the site that leads the term, by its own word; "" = none has said so.
func (s *clock) Leader() string { return s.leader }
