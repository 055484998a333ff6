package compare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	// maxKept statements of each site are remembered, the newest; heardOf of them are told to
	// one who asks.
	maxKept = 64
	heardOf = 4
)

// errUnproven reports a statement that its site has not signed.
var errUnproven = errors.New("it is not signed by the key that the roster has of its site")

// take checks what a site says of itself, remembers it, and looks whether it said otherwise before. With one bad
// signature the whole answer is none, and people are told, once until the site answers well.
func (c *Checker) take(site string, list []Statement) error {
	if c.cfg.Identity == nil {
		return nil
	}
	for i := range list {
		if !c.remembers(&list[i]) && !c.proven(&list[i]) {
			c.tellUnproven(site, list[i].Entry)
			return fmt.Errorf("%s of entry %d: %w", site, list[i].Entry, errUnproven)
		}
	}
	for i := range list {
		if before, contradicts := c.remember(list[i]); contradicts {
			c.proveLie(before, list[i])
		}
	}
	c.keep(list)
	return nil
}

// remembers reports whether the very same was said and checked before.
func (c *Checker) remembers(s *Statement) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.kept[s.Site][s.Entry]
	return ok && old.Checkpoint == s.Checkpoint && old.Format == s.Format && bytes.Equal(old.Signature, s.Signature)
}

// remember keeps a proven statement, unless its site has said otherwise of the entry.
func (c *Checker) remember(s Statement) (before Statement, contradicts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unproven, s.Site)
	of := c.kept[s.Site]
	if of == nil {
		of = map[uint64]Statement{}
		c.kept[s.Site] = of
	}
	before, known := of[s.Entry]
	switch {
	case known && before.Contradicts(&s):
		return before, true
	case !known || s.Hashed:
		of[s.Entry] = s
	}
	for len(of) > maxKept {
		delete(of, slices.Min(slices.Collect(maps.Keys(of))))
	}
	return Statement{}, false
}

func (c *Checker) tellUnproven(site string, entry uint64) {
	c.mu.Lock()
	known := c.unproven[site]
	c.unproven[site] = true
	c.mu.Unlock()
	if !known {
		c.cfg.Log.Warn().Str("member", site).Uint64("entry", entry).
			Msg("a site's answer about its state is not signed by its key: it does not count")
	}
}

// heard returns what others have said of an entry or later ones, of each the newest few.
func (c *Checker) heard(from uint64) []Statement {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Statement
	for _, of := range c.kept { // in random order: not all may fit
		entries := slices.Sorted(maps.Keys(of))
		for _, entry := range entries[max(0, len(entries)-heardOf):] {
			if entry >= from && len(out) < maxHeard {
				out = append(out, of[entry])
			}
		}
	}
	return out
}

// askHeard asks those that differ what they have heard from others: one that told them one history, and this member
// another one, is proven to lie by its own signatures.
func (c *Checker) askHeard(ctx context.Context, members []Member) {
	if c.cfg.Identity == nil {
		return
	}
	asked := 0
	for _, m := range members {
		c.mu.Lock()
		d, differs := c.differ[m.Site]
		c.mu.Unlock()
		if !differs || asked == maxOthers {
			continue
		}
		asked++
		q := binary.AppendUvarint([]byte{questionHeard}, d.Since)
		list, err := c.ask(ctx, m, q, maxHeardSize, maxHeard)
		if err != nil {
			c.cfg.Log.Debug().Err(err).Str("member", m.Site).Msg("not told what it has heard")
			continue
		}
		for i := range list {
			c.match(&list[i])
		}
	}
}

// match looks whether a site has told somebody else otherwise than this member.
func (c *Checker) match(s *Statement) {
	c.mu.Lock()
	here, known := c.kept[s.Site][s.Entry]
	_, lies := c.found.Liars[s.Site]
	c.mu.Unlock()
	if known && !lies && here.Contradicts(s) && c.proven(s) {
		c.proveLie(here, *s)
	}
}

// proveLie tells people that a site has signed two different histories or states, and keeps the proof.
func (c *Checker) proveLie(a, b Statement) {
	c.mu.Lock()
	_, known := c.found.Liars[a.Site]
	if !known {
		if c.found.Liars == nil {
			c.found.Liars = map[string]uint64{}
		}
		c.found.Liars[a.Site] = a.Entry
	}
	c.mu.Unlock()
	if known {
		return
	}
	c.cfg.Log.Error().Str("site", a.Site).Uint64("entry", a.Entry).
		Msg("a site has signed two different histories or states of one entry: nothing that it says of them counts any more; " +
			"see \"A broker's state differs\" in the operator guide")
	c.keepProof("lied", a.Site, a.Entry, []Statement{a, b})
}
