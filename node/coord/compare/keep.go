package compare

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// keepDifference keeps what was signed of the entry at which a site was found to differ, by all who were asked.
func (c *Checker) keepDifference(members []Member, site string, said map[string][]Statement) {
	c.mu.Lock()
	d, differs := c.differ[site]
	c.mu.Unlock()
	if c.cfg.Identity == nil || !differs {
		return
	}
	own := ofEntry(d.Entry, c.statements()) // of now: what was said before may have had no hash yet
	if len(own) == 0 {
		return
	}
	var list []Statement
	for _, m := range members {
		list = append(list, ofEntry(d.Entry, said[m.Site])...)
	}
	c.keepProof("differs", site, d.Entry, append(list[:min(len(list), maxHeard)], own...))
}

// ofEntry returns the statements of one entry.
func ofEntry(entry uint64, list []Statement) (of []Statement) {
	for _, s := range list {
		if s.Entry == entry {
			of = append(of, s)
		}
	}
	return of
}

// evidence puts together what a third party needs.
func (c *Checker) evidence(list []Statement) *Evidence {
	g, roster := &c.cfg.Group, c.cfg.Identity.Roster()
	e := &Evidence{
		Format: 1, Federation: hex.EncodeToString(g.Federation[:]), Lineage: hex.EncodeToString(g.Lineage[:]),
		Reporter: c.cfg.Site, At: time.Now().UTC().Truncate(time.Second),
	}
	sites, voter := []string{c.cfg.Site}, map[string]bool{}
	for i := range list {
		key, _ := roster.Key(list[i].Site)
		e.Statements = append(e.Statements, list[i].shown(key))
		sites = append(sites, list[i].Site) // it may have left the group since
	}
	for _, m := range c.cfg.Members() {
		sites, voter[m.Site] = append(sites, m.Site), m.Voter
	}
	seen := map[string]bool{}
	for _, site := range sites {
		if key, known := roster.Key(site); known && !seen[site] && len(e.Members) < maxListed {
			seen[site] = true
			e.Members = append(e.Members, ListedKey{site, key, roster.Find(key).Elector, voter[site]})
		}
	}
	slices.SortFunc(e.Members, func(a, b ListedKey) int { return strings.Compare(a.Site, b.Site) })
	return e
}
