package devfed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// All sites of a dev federation are one person's: each is invited, admitted and made an elector without a question.

const (
	// invitedFor bounds how long a site's first start may take.
	invitedFor = "720h"
	askWait    = 30 * time.Second
	askEvery   = 200 * time.Millisecond
)

// invite has the running sites let another one in, and leaves the invitation in its folder.
func invite(ctx context.Context, members []*devSite, s *devSite) error {
	text, err := inviteThrough(ctx, members[0], s.Name)
	if err == nil {
		err = os.WriteFile(s.file(invitationFile), []byte(text+"\n"), 0o600)
	}
	if err == nil {
		err = decide(ctx, members, "admit", s.Name)
	}
	if err != nil {
		return fmt.Errorf("invite %s: %w", s.Name, err)
	}
	return nil
}

// invitationFile holds a site's invitation until it is in.
const invitationFile = "invitation"

func inviteThrough(ctx context.Context, by *devSite, site string) (text string, err error) {
	err = by.ask(ctx, func(ctx context.Context, c *client.Client) error {
		v, cause := c.Invite(ctx, wire.InviteRequest{Site: site, For: invitedFor})
		text = v.Token
		return cause
	})
	return text, err
}

// elect makes those electors that are none yet: invitations make the first five.
func elect(ctx context.Context, members []*devSite) error {
	var list wire.List[wire.Member]
	err := members[0].ask(ctx, func(ctx context.Context, c *client.Client) (err error) {
		list, err = c.Members(ctx)
		return err
	})
	for _, m := range list.Items {
		if err != nil {
			break
		}
		if m.Elector || m.Banned || !slices.ContainsFunc(members, func(s *devSite) bool { return s.Name == m.Site }) {
			continue
		}
		if err = propose(ctx, members[0], m.Site); err == nil {
			err = decide(ctx, members, "elector", m.Site)
		}
	}
	if err != nil {
		return fmt.Errorf("make all sites electors: %w", err)
	}
	return nil
}

func propose(ctx context.Context, by *devSite, site string) error {
	return by.ask(ctx, func(ctx context.Context, c *client.Client) error {
		_, err := c.Propose(ctx, wire.MotionRequest{What: "elector", Site: site})
		return err
	})
}

// decide has as many electors vote for what is open about a site as it takes.
func decide(ctx context.Context, members []*devSite, what, site string) error {
	for _, s := range members {
		m, err := openMotion(ctx, members[0], what, site)
		if err != nil || m == nil {
			return err
		}
		if !slices.Contains(m.Missing, s.Name) {
			continue
		}
		err = s.ask(ctx, func(ctx context.Context, c *client.Client) error {
			_, cause := c.Vote(ctx, strconv.FormatUint(m.Number, 10), true)
			return cause
		})
		var p *client.Problem
		if err != nil && !errors.As(err, &p) { // a problem: it was decided meanwhile
			return err
		}
	}
	return nil
}

// openMotion returns what is open about a site, or nil.
func openMotion(ctx context.Context, at *devSite, what, site string) (found *wire.Motion, err error) {
	err = at.ask(ctx, func(ctx context.Context, c *client.Client) error {
		list, cause := c.Motions(ctx, "open")
		for i := range list.Items {
			if m := &list.Items[i]; m.What == what && m.Site == site {
				found = m
			}
		}
		return cause
	})
	return found, err
}

// ask puts a question to the site's broker, again while it is not able to answer.
func (s *devSite) ask(ctx context.Context, question func(context.Context, *client.Client) error) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	for {
		err = question(ctx, c)
		var p *client.Problem
		if err == nil || errors.As(err, &p) && p.Status < 500 {
			return err
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
}

// others returns the folder's other sites that have data.
func (s *devSite) others() (others []*devSite) {
	configs, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Dir), "*", "config.yaml")) // its pattern is well-formed
	for _, path := range configs {
		other, err := readSite(filepath.Dir(path))
		if err == nil && other.Name != s.Name && !other.fresh {
			others = append(others, other)
		}
	}
	return others
}

// founding is how a fresh site's broker begins; it goes by the environment, so that the command line is the same at
// every start.
func (s *devSite) founding(founds bool) []string {
	switch {
	case !s.fresh:
		return nil
	case founds:
		return []string{config.EnvPrefix + "BOOTSTRAP=true"}
	}
	return []string{config.EnvPrefix + "JOIN=@" + s.file(invitationFile)}
}
