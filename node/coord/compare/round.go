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

// askMembers returns the hashes of those members that answer as who they should be.
func (c *Checker) askMembers(ctx context.Context, members []Member) map[string][]coord.Checkpoint {
	said := map[string][]coord.Checkpoint{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, maxAtOnce)
	for _, m := range members {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			points, err := c.askOne(ctx, m)
			if err != nil {
				c.cfg.Log.Debug().Err(err).Str("member", m.Site).Msg("state not compared")
				return
			}
			mu.Lock()
			defer mu.Unlock()
			said[m.Site] = points
		})
	}
	wg.Wait()
	return said
}

// askOne asks one member for its hashes.
func (c *Checker) askOne(ctx context.Context, m Member) ([]coord.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	conn, err := c.question(ctx, m, questionHashes)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b, err := relay.ReadFrame(conn, nil, maxHashes)
	if err != nil {
		return nil, fmt.Errorf("answer of %s: %w", m.Addr, err)
	}
	a, err := parseAnswer(b)
	switch {
	case err != nil:
		return nil, fmt.Errorf("answer of %s: %w", m.Addr, err)
	case a.site != m.Site:
		return nil, fmt.Errorf("%s answers as %.80q, not as %s", m.Addr, a.site, m.Site)
	case a.format != c.cfg.Machine.HashFormat():
		return nil, fmt.Errorf("%s hashes another form of the state, %q: it runs another version", m.Site, a.format)
	}
	return a.points, nil
}

// question dials a member and asks.
func (c *Checker) question(ctx context.Context, m Member, q byte) (net.Conn, error) {
	conn, err := c.cfg.Dial(ctx, m)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(c.cfg.Timeout))
	if _, err := conn.Write(relay.EndFrame(append(relay.Frame(nil), q))); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask %s: %w", m.Addr, err)
	}
	return conn, nil
}

// recordFinding remembers what a round has found, and tells people what is new. A site that
// differed does so until it was seen to agree, or is no member any more.
func (c *Checker) recordFinding(members []Member, f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.found.Differ
	now := map[string]uint64{}
	for _, m := range members {
		if at, ok := before[m.Site]; ok {
			now[m.Site] = at
		}
	}
	newest, same := c.found.Entry, []string(nil)
	for _, n := range f.Newest {
		newest = max(newest, n.Entry)
	}
	for _, site := range slices.Sorted(maps.Keys(f.Newest)) {
		n := f.Newest[site]
		if !n.Same() {
			now[site] = n.Entry
			if _, known := before[site]; !known {
				c.alarm(site, n)
			}
			continue
		}
		if delete(now, site); before[site] != 0 {
			c.cfg.Log.Info().Str("differed", site).Uint64("entry", n.Entry).Msg("a site has the same state as this one again")
		}
		if n.Entry == newest {
			same = append(same, site)
		}
	}
	if newest > c.found.Entry || len(same) > 0 {
		c.found.Entry, c.found.Same = newest, same
	}
	if len(f.Newest) > 0 {
		c.found.At = time.Now()
	}
	c.found.Differ, c.found.Alone = now, len(members) < 2
}

// alarm tells people that a site differs.
func (c *Checker) alarm(site string, n Common) {
	c.cfg.Log.Error().Str("differs", site).Uint64("entry", n.Entry).
		Str("own_hash", hex.EncodeToString(n.Own[:])).Str("its_hash", hex.EncodeToString(n.Theirs[:])).
		Msg("a site has another state than this one: see \"A broker's state differs\" in the operator guide")
}
