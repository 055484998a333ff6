package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// userLoad is what all submit in turns, in a federation of its own.
type userLoad struct {
	name        string
	clients     int
	contentType string
	jobs        int // in a request
	calls       int // of a round
	// cores that each site lends. A site publishes its users' jobs for about twice what is lent and holds the rest:
	// with most cores it holds none of so many calls, and an acknowledgement is a commit, as of the site's own jobs.
	cores int
}

const mostCores = 1024

var userLoads = []userLoad{
	{"singles, 1 client", 1, "application/json", 1, 200, mostCores},
	{"singles, 16 clients", 16, "application/json", 1, 240, mostCores},
	{"singles, 64 clients", 64, "application/json", 1, 240, mostCores},
	{"singles, 64 clients, users' held", 64, "application/json", 1, 200, 1},
	{"NDJSON of 1000, 16 clients, users' held", 16, "application/x-ndjson", linesPerRequest, 16, 1},
}

// holds reports whether most of what users submit is held.
func (l userLoad) holds() bool { return l.cores < mostCores }

// body is a request's: jobs that wait for a site that is busy.
func (l userLoad) body(fed *testbed.Federation) []byte {
	spec := mustJSON(testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{fed.Sites[2].Name}}})
	if l.jobs == 1 {
		return spec
	}
	return bytes.Repeat(append(spec, '\n'), l.jobs)
}

// measureUsers counts acknowledged jobs a second by who submits them: the site's operator, users by tokens of the
// broker, users by tokens of an identity provider, in turns in one federation; another build of the program takes a
// turn beside each of theirs, in a federation of its own: the queues of both grow alike.
func measureUsers(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareRaft(env, "bare-users")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	s := sheet{
		title: "submissions by users: processor time of the brokers (medians), and what is kept (geometric means, with standard errors)",
		head: []string{
			"load", "who submits", "ms a job", "beside", "its ms a job", "kept of the rate", "kept by processor time",
		},
	}
	defer func() { t.addSheet(s) }() // what was measured before one failed, too
	for _, l := range pick(env, userLoads, userLoads[2:3]) {
		u := &users{env: env, bare: bare, load: l}
		if err := u.measure(ctx, t, &s); err != nil {
			return fmt.Errorf("submit %s: %w", l.name, err)
		}
	}
	return measureTurns(ctx, env, t)
}

// users is the set-up of one load.
type users struct {
	env     environment
	bare    *coordtest.BareRaft
	load    userLoad
	bearers []*bearer
	limits  []float64 // what the bare means reached, of each round
}

func (u *users) measure(ctx context.Context, t *table, s *sheet) error {
	spells := 1
	if u.env.beside != "" {
		spells = pick(u.env, 4, 2)
	}
	for i := range spells {
		if err := u.spell(ctx, i); err != nil {
			return err
		}
	}
	for _, b := range u.bearers {
		t.add(figure{
			name: fmt.Sprintf("submissions by %s, %s", b.name, u.load.name), measured: median(b.rates), limit: median(u.limits),
			unit: "jobs/s", note: "limit: bare raft Apply loop, as of submissions",
		})
		s.rows = append(s.rows, b.row(u.load))
	}
	return nil
}

// spell has all submit in federations of their own: in one, what a site publishes of its users' jobs would soon be
// all that it may.
func (u *users) spell(ctx context.Context, i int) (err error) {
	before := u.bearers
	u.bearers = nil
	stop, err := u.start(ctx, i)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := u.takeTurns(ctx); err != nil {
		return err
	}
	for i, b := range before {
		u.bearers[i].continues(b)
	}
	return nil
}

// takeTurns has all submit in each round, every other one backwards: neither the growing queue nor others' use of the
// machine falls on one of them. Rounds are many and short, since what else the machine's disk does lasts for seconds.
func (u *users) takeTurns(ctx context.Context) error {
	order := u.inTurns()
	rounds := 2
	if u.env.beside != "" {
		rounds = pick(u.env, 12, 2)
	}
	calls := pick(u.env, u.load.calls, max(u.load.calls/4, u.load.clients))
	for _, b := range order {
		if err := b.begin(ctx, u.load, calls); err != nil {
			return fmt.Errorf("by %s: %w", b.name, err)
		}
	}
	for range rounds {
		limit, err := u.bareRate(ctx, calls)
		if err != nil {
			return err
		}
		u.limits = append(u.limits, limit)
		for _, b := range order {
			if err := b.submit(ctx, u.load, calls); err != nil {
				return fmt.Errorf("by %s: %w", b.name, err)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// inTurns returns those who submit, each with what stands beside it alone.
func (u *users) inTurns() (order []*bearer) {
	for _, b := range u.bearers {
		if b.beside != nil && b.beside.fed != b.fed {
			order = append(order, b.beside)
		}
		order = append(order, b)
	}
	return order
}

func (u *users) bareRate(ctx context.Context, calls int) (float64, error) {
	one := func(int) (int, error) { return 1, u.bare.Apply(make([]byte, entryBytes)) }
	if u.load.jobs > 1 {
		many := u.load.body(u.bearers[0].fed)
		one = func(int) (int, error) { return bareLines(u.bare, many) }
	}
	return countTo(ctx, u.load.clients, calls, one)
}
