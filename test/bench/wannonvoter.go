package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// measureFarNonVoter has one more site join, which does not vote, as far from everyone as all others are, and times
// acknowledgements and reads there. The site stays, so this is the last section of the federation.
func measureFarNonVoter(ctx context.Context, env environment, t *table) error {
	f, err := env.farSites(ctx)
	if err != nil {
		return err
	}
	if err := f.joinOneMore(ctx); err != nil {
		return errors.Join(fmt.Errorf("one more site: %w", err), env.far.close())
	}
	var layouts []layout
	for _, rtt := range pick(env, []int{20, 100, 200}, []int{20}) {
		layouts = append(layouts, evenLayout(farCount(env)+1, time.Duration(rtt)*time.Millisecond))
	}
	return eachScene(ctx, env, t, layouts, func(ctx context.Context, sc *scene) error { return sc.nonVoter(ctx) })
}

// withoutVote returns the site that does not vote.
func (sc *scene) withoutVote(ctx context.Context) (*testbed.Site, error) {
	st, err := sc.leader.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sc.Sites {
		if !slices.Contains(st.Voters, s.Name) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("all vote: %v", st.Voters)
}

func (sc *scene) nonVoter(ctx context.Context) error {
	at, err := sc.withoutVote(ctx)
	if err != nil {
		return err
	}
	if _, err := sc.timed(ctx, at, 4, 1); err != nil { // warms up
		return err
	}
	for _, c := range []struct {
		row            string
		clients, least int
	}{
		{"a site without a vote, 1 client, p50", 1, 12},
		{"a site without a vote, 64 clients, p50", 64, 3},
	} {
		got, err := sc.timed(ctx, at, c.clients, c.least)
		if err != nil {
			return err
		}
		sc.add(c.row, figure{
			measured: got.took.quantile(0.5), limit: ms(sc.submitted(at)), unit: "ms", aim: aim{maxRatio: 1.1},
		})
	}
	return sc.reads(ctx, at)
}

// reads times answers about a job at a site, beside the same at the leader.
func (sc *scene) reads(ctx context.Context, at *testbed.Site) error {
	a, err := at.Submit(ctx, waitingSpec)
	if err != nil {
		return err
	}
	var took [2]sample
	for range pick(sc.env, 100, 10) {
		for i, s := range []*testbed.Site{at, sc.leader} {
			asked := time.Now()
			if _, err := s.Job(ctx, a.ID); err != nil {
				return fmt.Errorf("read at %s: %w", s.Name, err)
			}
			took[i] = append(took[i], time.Since(asked))
		}
	}
	sc.add("a site without a vote, reads a job, p50", figure{
		measured: took[0].quantile(0.5), limit: took[1].quantile(0.5), unit: "ms", note: "limit: at the leader",
	})
	return nil
}
