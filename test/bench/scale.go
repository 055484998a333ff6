package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Federations of many sites: five vote, the others have the state and do not vote. One federation grows through all
// sizes; DESIGN.md says what is measured at each, and why like this.

// scalePlan is through which sizes a federation grows.
type scalePlan struct {
	profile string
	sizes   []int
	window  time.Duration // at rest
	settle  time.Duration // at most, until it rests
	tasks   int           // short ones; 0: it is only looked at while it rests
}

// measureScale is of the LAN profile.
func measureScale(ctx context.Context, env environment, t *table) error {
	full := scalePlan{profile: "lan", sizes: []int{5, 50, 100, 150, 200}, tasks: 2000}
	full.window, full.settle = 10*time.Second, time.Minute
	quick := scalePlan{profile: "lan", sizes: []int{5, 8}, tasks: 20, window: time.Second, settle: time.Second}
	return pick(env, full, quick).run(ctx, env, t)
}

// measureScaleFar is of the WAN profile, whose brokers say less often that they are there.
func measureScaleFar(ctx context.Context, env environment, t *table) error {
	return pick(env,
		scalePlan{profile: "wan", sizes: []int{5, 50, 100}, window: 30 * time.Second, settle: 40 * time.Second},
		scalePlan{profile: "wan", sizes: []int{5, 8}, window: time.Second, settle: time.Second},
	).run(ctx, env, t)
}

// run grows a federation, and adds what was measured even when it fails on the way.
func (p scalePlan) run(ctx context.Context, env environment, t *table) (err error) {
	c, err := openCrowd(ctx, env, p.profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	g := growth{profile: p.profile}
	defer func() { t.addSheet(g.sheet()) }()
	for i, n := range p.sizes {
		began := time.Now()
		s := step{crowd: c, env: env, plan: p, sites: n, found: map[string]float64{}}
		s.kills = p.tasks > 0 && (!env.quick || i == len(p.sizes)-1)
		g.steps = append(g.steps, s)
		if err = s.measure(ctx); err != nil {
			return fmt.Errorf("%d sites: %w", n, err)
		}
		fmt.Fprintf(env.notes, "%s, %d sites: %.0f s, load %s\n", p.profile, n, time.Since(began).Seconds(), load())
	}
	return nil
}

// step is one size of a federation, and what was found at it.
type step struct {
	*crowd

	env   environment
	plan  scalePlan
	sites int
	kills bool
	found map[string]float64 // by the name of a scaleRow
}

// measure grows the federation to this size, and measures it.
func (s step) measure(ctx context.Context) error {
	if err := s.grow(ctx); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := s.rest(ctx); err != nil {
		return fmt.Errorf("at rest: %w", err)
	}
	if s.plan.tasks > 0 {
		if err := s.work(ctx); err != nil {
			return fmt.Errorf("at work: %w", err)
		}
	}
	if s.kills {
		if err := s.loss(ctx); err != nil {
			return fmt.Errorf("a site is killed: %w", err)
		}
	}
	return nil
}

// scaleRow is one figure of each size.
type scaleRow struct{ name, unit string }

// Rows of the sheet, in their order.
const (
	rowInvite      = "an invitation, decided by 3 of 5 electors"
	rowJoinOne     = "one site joins, started → alive to the others"
	rowJoined      = "sites that then join at once"
	rowJoinAlive   = "  started → the last one alive to the others"
	rowJoinReady   = "  started → the last one ready"
	rowOwn         = "memory of its own, a site that does not vote"
	rowShare       = "  with its part of the program (PSS)"
	rowOwnLead     = "  the leader"
	rowRestLead    = "processor at rest, the leader"
	rowRestVoter   = "  another voter"
	rowRestOther   = "  a site that does not vote"
	rowRestAll     = "  all sites"
	rowEntries     = "entries of the log at rest"
	rowGossip      = "gossip at rest, a site"
	rowGossipCount = "  packets"
	rowCalls       = "between brokers at rest, to and from the leader's port"
	rowFollow      = "  to and from the port of a site that does not vote"
	rowAllCalls    = "  all"
	rowAllCount    = "  all, packets"
	rowPage        = "GET /v1/sites at a site that does not vote"
	rowPageBytes   = "  bytes"
	rowSubmit      = "submission at a site that does not vote, p50"
	rowTasks       = "short tasks from a site that does not vote"
	rowTasksTime   = "  time"
	rowTasksCount  = "  entries of the log"
	rowTasksSent   = "  sent between brokers"
	rowTasksLead   = "  processor, the leader"
	rowTasksOther  = "  processor, a site that does not vote"
	rowSuspect     = "a site is killed → it is no longer alive to the leader"
	rowLost        = "  → lost to all"
	rowState       = "its state in a file"
	rowExport      = "  read from its data and written"
	rowRestart     = "started again → ready"
)

var scaleRows = []scaleRow{
	{rowInvite, "ms"},
	{rowJoinOne, "s"},
	{rowJoined, "sites"},
	{rowJoinAlive, "s"},
	{rowJoinReady, "s"},
	{rowOwn, "MiB"},
	{rowShare, "MiB"},
	{rowOwnLead, "MiB"},
	{rowRestLead, "% of a core"},
	{rowRestVoter, "% of a core"},
	{rowRestOther, "% of a core"},
	{rowRestAll, "% of a core"},
	{rowEntries, "/s"},
	{rowGossip, "B/s"},
	{rowGossipCount, "/s"},
	{rowCalls, "B/s"},
	{rowFollow, "B/s"},
	{rowAllCalls, "B/s"},
	{rowAllCount, "/s"},
	{rowPage, "ms"},
	{rowPageBytes, "B"},
	{rowSubmit, "ms"},
	{rowTasks, "tasks"},
	{rowTasksTime, "s"},
	{rowTasksCount, "entries"},
	{rowTasksSent, "MB"},
	{rowTasksLead, "s"},
	{rowTasksOther, "s"},
	{rowSuspect, "s"},
	{rowLost, "s"},
	{rowState, "B"},
	{rowExport, "ms"},
	{rowRestart, "s"},
}

// growth is what was found at all sizes.
type growth struct {
	profile string
	steps   []step
}

// sheet has a column for each size, and what an added site costs by all of them.
func (g growth) sheet() sheet {
	out := sheet{title: "many sites, " + g.profile + " profile, 5 vote", head: []string{"sites"}}
	for _, s := range g.steps {
		out.head = append(out.head, fmt.Sprint(s.sites))
	}
	out.head = append(out.head, "an added site", "unit")
	for _, r := range scaleRows {
		line, seen := []string{r.name}, 0
		var x, y []float64
		for _, s := range g.steps {
			v, ok := s.found[r.name]
			if !ok {
				line = append(line, "-")
				continue
			}
			seen++
			x, y = append(x, float64(s.sites)), append(y, v)
			line = append(line, number(v))
		}
		if seen == 0 {
			continue
		}
		out.rows = append(out.rows, append(line, slopeText(slope(x, y)), r.unit))
	}
	return out
}

// slope returns what one more x adds to y, by least squares; 0 of fewer than two.
func slope(x, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

// slopeText keeps three digits, however small.
func slopeText(v float64) string {
	text := fmt.Sprintf("%+.3g", v)
	if strings.Contains(text, "e") {
		return fmt.Sprintf("%+.0f", v)
	}
	return text
}
