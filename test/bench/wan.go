package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// Sites far apart: five voters with the WAN profile, each on a host of its own, with links of
// one length, and mixed ones. All sections of the group share one federation, since it takes
// more than a minute until five sites vote.

// farCores of each site.
const farCores = 4

// Names of mixed layouts: where the leader is.
const (
	mixNear = "mix, leader near"
	mixFar  = "mix, leader at 150"
)

// farLease is the WAN profile's, or in a quick run the LAN profile's.
func farLease(env environment) time.Duration { return pick(env, 30*time.Second, 6*time.Second) }

// farLayouts are those of the rows that are measured at each.
func farLayouts(env environment) []layout {
	n := farCount(env)
	if env.quick {
		return []layout{evenLayout(n, 0), evenLayout(n, 20*time.Millisecond)}
	}
	var out []layout
	for _, rtt := range []int{0, 20, 50, 100, 200} {
		out = append(out, evenLayout(n, time.Duration(rtt)*time.Millisecond))
	}
	return append(out, mixLayout(n, mixNear, 0), mixLayout(n, mixFar, n-1))
}

// farCount is how many sites there are.
func farCount(env environment) int { return pick(env, 5, 3) }

// aimed is the layout at which the aims count.
func aimed(env environment) string { return pick(env, "100 ms", "20 ms") }

// farShared is the federation of the sections, once one of them has asked for it, and the grid of what they found.
type farShared struct {
	sites *farSites
	grid  farGrid
}

// farSites returns the federation, which it starts the first time.
func (env environment) farSites(ctx context.Context) (*farSites, error) {
	if env.far.sites != nil {
		return env.far.sites, nil
	}
	profile := pick(env, "wan", "lan")
	fmt.Fprintf(env.notes, "wan: %d sites with the %s profile start and vote: some %s\n", farCount(env), profile,
		pick(env, 80*time.Second, 10*time.Second))
	f, err := openFarSites(ctx, env, farCount(env), farCores, profile)
	if err != nil {
		return nil, fmt.Errorf("start federation: %w", err)
	}
	env.far.sites = f
	return f, nil
}

// close ends the federation, if there is one.
func (s *farShared) close() error {
	if s.sites == nil {
		return nil
	}
	f := s.sites
	s.sites = nil
	return f.close()
}

// end closes the federation and shows the grid, if anything was measured.
func (s *farShared) end(t *table) error {
	if len(s.grid.rows) > 0 {
		t.addSheet(s.grid.sheet())
	}
	return s.close()
}

// scene is one layout with its sites in their roles.
type scene struct {
	layout
	*farSites

	env    environment
	t      *table
	leader *testbed.Site
	// follower submits, executor runs what it publishes; far is the farthest site of a mix, or nil.
	follower, executor, far *testbed.Site
	paths                   paths
}

// eachScene measures at each layout. A federation that failed is not used again.
func eachScene(ctx context.Context, env environment, t *table, layouts []layout,
	measure func(context.Context, *scene) error,
) error {
	for _, l := range layouts {
		sc, err := openScene(ctx, env, t, l)
		if err == nil {
			err = measure(ctx, sc)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", l.name, err), env.far.close())
		}
	}
	return nil
}

// openScene lays the links of one layout.
func openScene(ctx context.Context, env environment, t *table, l layout) (*scene, error) {
	f, err := env.farSites(ctx)
	if err != nil {
		return nil, err
	}
	leader, others, p, err := f.lay(ctx, l)
	if err != nil {
		return nil, err
	}
	sc := &scene{
		layout: l, farSites: f, env: env, t: t, leader: leader, follower: others[0], executor: others[1], paths: p,
	}
	if l.name == mixNear {
		sc.far = others[len(others)-1]
	}
	return sc, nil
}

// submitted is the least that an acknowledgement at a site takes.
func (sc *scene) submitted(at *testbed.Site) time.Duration {
	return sc.paths.submitted(sc.number(at), sc.number(sc.leader))
}

// started is the least until a task of one site begins at another.
func (sc *scene) started(owner, executor *testbed.Site) time.Duration {
	return sc.paths.started(sc.number(owner), sc.number(sc.leader), sc.number(executor))
}

// add shows a figure, in the grid, too, and says that it is there. Its aim counts at one round trip.
func (sc *scene) add(row string, f figure) {
	if !strings.HasPrefix(sc.name, aimed(sc.env)) {
		f.aim = aim{}
	}
	f.name = row + ", " + sc.name
	sc.t.add(f)
	sc.env.far.grid.set(row, sc.name, f)
	fmt.Fprintf(sc.env.notes, "wan: %s: %s %s, limit %s\n", f.name, number(f.measured), f.unit, limitText(f.limit))
}

// ms is a time in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// noisy is a layout whose links lose and vary.
func noisy(l layout) layout {
	l.name += ", 1% lost, 30 ms jitter"
	l.rest = netlab.Link{Loss: 0.01, Jitter: 30 * time.Millisecond}
	return l
}
