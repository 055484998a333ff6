package compare

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// recordFinding remembers what a round has found, tells people what is new, and returns the sites that differ newly. A
// site that differed does so until it was seen to agree in the same way, or is no member any more.
func (c *Checker) recordFinding(members []Member, f *Finding) (fresh []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetAllBut(members)
	newest, same, state := c.found.Entry, []string(nil), c.state
	for _, n := range f.Newest {
		newest, state = max(newest, n[Histories].Entry), max(state, n[States].Entry)
	}
	for _, site := range slices.Sorted(maps.Keys(f.Newest)) {
		n := f.Newest[site]
		was, known := c.differ[site]
		if k, p, differs := n.Differs(); differs {
			if known && was.Kind == k {
				p.Since = min(p.Since, was.Since)
			}
			if c.differ[site] = (difference{k, p}); !known {
				c.alarm(site, c.differ[site])
				fresh = append(fresh, site)
			}
			continue
		}
		if known && n[was.Kind].Entry < was.Entry {
			continue // not compared in that way since
		}
		if delete(c.differ, site); known {
			c.cfg.Log.Info().Str("differed", site).Uint64("entry", n[was.Kind].Entry).
				Msg("a site has the same " + was.Kind.String() + " as this one again")
		}
		if n[Histories].Entry == newest {
			same = append(same, site)
		}
	}
	if newest > c.found.Entry || len(same) > 0 {
		c.found.Entry, c.found.Same = newest, same
	}
	if state > c.state { // what was compared before is no news: checkpoints may have ceased
		c.state, c.found.At = state, time.Now()
	}
	c.found.Alone = len(members) < 2
	for k := range c.backed {
		c.backed[k] = max(c.backed[k], f.Backed[k])
	}
	return fresh
}

// forgetAllBut forgets those that are no members any more. REQUIRES: c.mu held.
func (c *Checker) forgetAllBut(members []Member) {
	left := func(site string) bool {
		return !slices.ContainsFunc(members, func(m Member) bool { return m.Site == site })
	}
	maps.DeleteFunc(c.differ, func(site string, _ difference) bool { return left(site) })
	maps.DeleteFunc(c.found.Liars, func(site string, _ uint64) bool { return left(site) })
	maps.DeleteFunc(c.kept, func(site string, _ map[uint64]Statement) bool { return left(site) })
	maps.DeleteFunc(c.unproven, func(site string, _ bool) bool { return left(site) })
}

// alarm tells people that a site differs.
func (c *Checker) alarm(site string, d difference) {
	c.cfg.Log.Error().Str("differs", site).Uint64("entry", d.Entry).Uint64("since", d.Since).
		Str("own_hash", hex.EncodeToString(d.Own[:])).Str("its_hash", hex.EncodeToString(d.Theirs[:])).
		Msg("a site has another " + d.Kind.String() + " than this one: see \"A broker's state differs\" in the operator guide")
}

// unsure says why this member is to begin nothing for others: a site differs from it, and most of the voters have not
// been seen to have what it has. A site that is proven to lie makes nobody unsure.
func (c *Checker) unsure() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, site := range slices.Sorted(maps.Keys(c.differ)) {
		d := c.differ[site]
		if _, lies := c.found.Liars[site]; !lies && c.backed[d.Kind] < d.Since {
			return fmt.Sprintf("its %s differs from that of %s since entry %d at the latest, and no majority of the voters "+
				"has the same as this one", d.Kind, site, d.Since)
		}
	}
	return ""
}

// setUnsure has this member begin nothing for others from now on, "": it may again.
func (c *Checker) setUnsure(unsure string) {
	c.mu.Lock()
	was := c.found.Unsure
	c.found.Unsure = unsure
	c.mu.Unlock()
	switch {
	case (was == "") == (unsure == ""):
		return
	case unsure != "":
		c.cfg.Log.Error().Str("why", unsure).Msg("no task of another site is started here, and nothing is offered")
	default:
		c.cfg.Log.Info().Msg("tasks of other sites are started here again")
	}
}
