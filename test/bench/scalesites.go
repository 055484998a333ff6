package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// crowd is brokers of one host, so that all of them send over its loopback, and nobody else does.
type crowd struct {
	farSites

	inotify string // how many instances of it a user could have before
}

const (
	crowdVoters = 5
	// crowdNice is by how much voters come before this process for the cores, and other sites behind it. In life each
	// site has its own: here fifty that start at once would keep the voters from saying in time that they are there.
	crowdNice = 10
	// crowdPort is the first site's API. All ports are below those that the system gives away by itself.
	crowdPort = 20000
)

// openCrowd founds a federation of voters.
func openCrowd(ctx context.Context, env environment, profile string) (*crowd, error) {
	lab, err := netlab.New(1)
	if err != nil {
		return nil, err
	}
	before, err := allowInotify()
	if err != nil {
		return nil, errors.Join(err, lab.Close())
	}
	c := &crowd{farSites{
		lab: lab, dir: filepath.Join(env.dir, "crowd-"+profile), binary: env.binary, profile: profile, cores: 1,
	}, before}
	for range crowdVoters {
		if err := c.add(); err != nil {
			return nil, errors.Join(err, lab.Close())
		}
	}
	if err := c.found(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// inotifyMost is how many instances of inotify a user may have; each broker has one. Systems allow 128.
const inotifyMost = "/proc/sys/fs/inotify/max_user_instances"

// allowInotify has this user's brokers be as many as are wanted here, and returns what was allowed before.
func allowInotify() (before string, err error) {
	b, err := os.ReadFile(inotifyMost)
	if err != nil {
		return "", fmt.Errorf("read how many instances of inotify there may be: %w", err)
	}
	before = strings.TrimSpace(string(b))
	if n, bad := strconv.Atoi(before); bad == nil && n >= 1024 {
		return before, nil
	}
	if err = os.WriteFile(inotifyMost, []byte("1024"), 0); err != nil {
		return "", fmt.Errorf("let more brokers have inotify: %w", err)
	}
	return before, nil
}

// close ends all brokers.
func (c *crowd) close() error {
	err := c.farSites.close()
	return errors.Join(err, os.WriteFile(inotifyMost, []byte(c.inotify), 0))
}

// add configures one more site.
func (c *crowd) add() error {
	s := newFarSite(c.dir, len(c.list)+1, c.lab.Hosts[0], crowdPort+portsOfSite*len(c.list))
	s.nice = -crowdNice
	if len(c.list) >= crowdVoters {
		s.nice = crowdNice
	}
	return c.enter(s)
}

// invite has the voters let in so many more sites, each voter the same share, and returns the ways in.
func (c *crowd) invite(ctx context.Context, n int) (ways [][]string, err error) {
	electors := c.Sites[:crowdVoters]
	for range n {
		if err := c.add(); err != nil {
			return nil, err
		}
		s := c.Sites[len(c.Sites)-1]
		by := electors[len(c.Sites)%crowdVoters]
		way, err := by.InviteFile(ctx, c.dir, s.Name, electors...)
		if err != nil {
			return nil, err
		}
		ways = append(ways, way)
	}
	return ways, nil
}

// joins are how long after their start sites were in.
type joins struct {
	alive sample // to the state of a voter
	ready sample // by their own word
}

// join starts the last sites, all at once, and waits until they are in.
func (c *crowd) join(ctx context.Context, ways [][]string) (got joins, err error) {
	newcomers := c.list[len(c.list)-len(ways):]
	began := time.Now()
	for i, s := range newcomers {
		if err := c.launch(s, ways[i]...); err != nil {
			return got, err
		}
	}
	for len(got.alive) < len(newcomers) || len(got.ready) < len(newcomers) {
		if err := pause(ctx, crowdLook); err != nil {
			return got, fmt.Errorf("%d of %d joined, %d are ready: %w\n%s", len(got.alive), len(ways), len(got.ready), err,
				newcomers[len(got.ready)%len(newcomers)].LogTail(10))
		}
		alive, err := c.alive(ctx, c.Sites[0])
		if err != nil {
			return got, err
		}
		now := time.Since(began)
		for len(got.alive) < alive-(len(c.list)-len(newcomers)) {
			got.alive = append(got.alive, now)
		}
		got.ready = append(got.ready, c.nowReady(ctx, newcomers[len(got.ready):], began)...)
	}
	return got, nil
}

// crowdLook is the time between two looks: more of them would cost what is measured.
const crowdLook = 50 * time.Millisecond

// alive counts the sites that are so to one of them.
func (c *crowd) alive(ctx context.Context, at *testbed.Site) (n int, err error) {
	infos, err := at.Infos(ctx)
	for _, i := range infos {
		if i.State == "alive" {
			n++
		}
	}
	return n, err
}

// nowReady asks sites in their order, up to the first one that is not ready.
func (c *crowd) nowReady(ctx context.Context, of []*farSite, began time.Time) (took sample) {
	for _, s := range of {
		if s.Ready(ctx) != nil {
			break
		}
		took = append(took, time.Since(began))
	}
	return took
}

// leader returns who leads, another voter, and the sites that do not vote.
func (c *crowd) leader(ctx context.Context) (lead, voter *testbed.Site, others []*testbed.Site, err error) {
	st, err := c.Sites[0].Status(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range c.Sites {
		switch {
		case s.Name == st.Leader:
			lead = s
		case slices.Contains(st.Voters, s.Name):
			voter = s
		default:
			others = append(others, s)
		}
	}
	if lead == nil || voter == nil {
		return nil, nil, nil, fmt.Errorf("no site leads, or none follows: %+v", st)
	}
	return lead, voter, others, nil
}
