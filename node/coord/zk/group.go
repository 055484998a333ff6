package zk

import (
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// group is what this member knows of the others now.
type group struct {
	mu      sync.Mutex
	lead    tree.LeadRecord // Site is "" while nobody holds /leader, or is just taking it
	term    uint64          // the newest known
	members []string
	voters  []string
	present []string
	unfit   []string // of these, those that should not lead
	// unreached are those that nobody reaches, which are unfit, too.
	unreached []string
	caught    bool
}

func (g *group) status() coord.Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return coord.Status{
		Lead: g.lead.Site, Term: g.term, CaughtUp: g.caught, Members: slices.Clone(g.members),
		Voters: slices.Clone(g.voters),
	}
}

func (g *group) leads() tree.LeadRecord {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lead
}

// set replaces what was known, and says whether that changed who leads, or
// anything at all.
func (g *group) set(
	lead tree.LeadRecord, term uint64, members, voters, present, unfit, unreached []string,
) (newLead, other bool) {
	for _, s := range [][]string{members, voters, present} {
		slices.Sort(s)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	term = max(term, g.term)
	newLead = lead != g.lead || term != g.term
	other = !slices.Equal(members, g.members) || !slices.Equal(voters, g.voters)
	if newLead {
		g.caught = false
	}
	g.lead, g.term, g.members, g.voters, g.present = lead, term, members, voters, present
	g.unfit, g.unreached = unfit, unreached
	return newLead, other
}

// forget reports whether nobody is known to lead.
func (g *group) forget() (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = g.lead != tree.LeadRecord{}
	g.lead, g.caught = tree.LeadRecord{}, false
	return changed
}

// marksOf returns what a site says of itself.
func (g *group) marksOf(site string) (unfit, unreached bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.unfit, site), slices.Contains(g.unreached, site)
}

// otherVoterReached reports whether a voter beside a site is connected, fit or not, that
// does not say that nobody reaches it.
func (g *group) otherVoterReached(site string) bool { return g.connectedBeside(site, &g.unreached) }

// otherVoterFit reports whether a voter beside a site is connected and fit.
func (g *group) otherVoterFit(site string) bool { return g.connectedBeside(site, &g.unfit) }

// connectedBeside reports whether a voter beside a site is connected and not one of but.
func (g *group) connectedBeside(site string, but *[]string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.voters, func(v string) bool {
		return v != site && slices.Contains(g.present, v) && !slices.Contains(*but, v)
	})
}

// fitVoters returns the voters that are connected and fit, sorted.
func (g *group) fitVoters() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.voters), func(v string) bool {
		return !slices.Contains(g.present, v) || slices.Contains(g.unfit, v)
	})
}

func (g *group) catch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caught = true
}

func (g *group) isMember(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.members, site)
}

func (g *group) isVoter(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.voters, site)
}

// otherVoters returns the voters without a site, and how many of them are present.
func (g *group) otherVoters(site string) (voters []string, present int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.voters {
		if v == site {
			continue
		}
		voters = append(voters, v)
		if slices.Contains(g.present, v) {
			present++
		}
	}
	return voters, present
}
