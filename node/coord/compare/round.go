package compare

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// askMembers returns what those members say that answer as who they should be, of the entries that this one has.
func (c *Checker) askMembers(ctx context.Context, members []Member, own []coord.Checkpoint) map[string][]Statement {
	said := map[string][]Statement{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, maxAtOnce)
	for _, m := range members {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			list, err := c.askOne(ctx, m)
			if err == nil {
				list = inCommon(list, own)
				err = c.take(m.Site, list)
			}
			if err != nil {
				c.cfg.Log.Debug().Err(err).Str("member", m.Site).Msg("state not compared")
				return
			}
			mu.Lock()
			defer mu.Unlock()
			said[m.Site] = list
		})
	}
	wg.Wait()
	return said
}

// inCommon returns what is said of entries that this member has: of others it could know nothing, and remember too
// much.
func inCommon(list []Statement, own []coord.Checkpoint) []Statement {
	return slices.DeleteFunc(list, func(s Statement) bool {
		return !slices.ContainsFunc(own, func(c coord.Checkpoint) bool { return c.Entry == s.Entry })
	})
}

// askOne asks one member for what it says of itself.
func (c *Checker) askOne(ctx context.Context, m Member) ([]Statement, error) {
	list, err := c.ask(ctx, m, []byte{questionOwn}, maxOwn, coord.MaxCheckpoints)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Site != m.Site {
			return nil, fmt.Errorf("%s answers as %.80q, not as %s", m.Addr, list[i].Site, m.Site)
		}
	}
	return list, nil
}

// ask has a member answer with statements.
func (c *Checker) ask(ctx context.Context, m Member, q []byte, size, most int) ([]Statement, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	conn, err := c.question(ctx, m, q)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b, err := relay.ReadFrame(conn, nil, size)
	var list []Statement
	if err == nil {
		list, err = parseStatements(b, most)
	}
	if err != nil {
		return nil, fmt.Errorf("answer of %s: %w", m.Addr, err)
	}
	return list, nil
}

// believed returns what counts of what was said: nothing of those that are proven to lie, and no state that is hashed
// in another form, as another version does.
func (c *Checker) believed(said map[string][]Statement) map[string][]coord.Checkpoint {
	format := c.cfg.Machine.HashFormat()
	out := map[string][]coord.Checkpoint{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for site, list := range said {
		if _, lies := c.found.Liars[site]; lies {
			continue
		}
		points := make([]coord.Checkpoint, len(list))
		for i := range list {
			points[i] = list[i].Checkpoint
			points[i].Hashed = points[i].Hashed && list[i].Format == format
		}
		out[site] = points
	}
	return out
}

// question dials a member and asks.
func (c *Checker) question(ctx context.Context, m Member, q []byte) (net.Conn, error) {
	conn, err := c.cfg.Dial(ctx, m)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(c.cfg.Timeout))
	if _, err := conn.Write(relay.EndFrame(append(relay.Frame(nil), q...))); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask %s: %w", m.Addr, err)
	}
	return conn, nil
}

// recordFinding remembers what a round has found, tells people what is new, and returns the sites that differ newly. A
// site that differed does so until it was seen to agree in the same way, or is no member any more.
func (c *Checker) recordFinding(members []Member, f *Finding) (fresh []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetAllBut(members)
	newest, same := c.found.Entry, []string(nil)
	for _, n := range f.Newest {
		newest = max(newest, n[Histories].Entry)
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
	if len(f.Newest) > 0 {
		c.found.At = time.Now()
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
