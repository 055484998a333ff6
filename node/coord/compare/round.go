package compare

import (
	"context"
	"fmt"
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
