package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
)

// layout is how far sites are from each other, and at which place the leader is. Who leads
// stays; the links are laid around it.
type layout struct {
	name   string
	places netlab.RoundTrips
	lead   int // its place, from 0
	rest   netlab.Link
}

// evenLayout has all sites equally far from each other.
func evenLayout(sites int, rtt time.Duration) layout {
	return layout{name: fmt.Sprintf("%d ms", rtt.Milliseconds()), places: netlab.EvenRoundTrips(sites, rtt)}
}

// mixLayout has the sites in different places, the leader at one of them.
func mixLayout(sites int, name string, lead int) layout {
	return layout{name: name, places: netlab.MixedRoundTrips(sites), lead: lead}
}

// settle returns the place of each site: the leader's is given, the others have the rest in
// their order.
func (l layout) settle(sites, leader int) []int {
	places, next := make([]int, sites), 0
	for i := range places {
		if i == leader {
			places[i] = l.lead
			continue
		}
		if next == l.lead {
			next++
		}
		places[i] = next
		next++
	}
	return places
}

// roundTrips returns the times between sites that have these places.
func (l layout) roundTrips(places []int) netlab.RoundTrips {
	out := netlab.EvenRoundTrips(len(places), 0)
	for i := range out {
		for j := range out[i] {
			out[i][j] = l.places.Between(places[i]+1, places[j]+1)
		}
	}
	return out
}

// paths are measured round trips between sites, by their number.
type paths [][]time.Duration

// pings of each pair of sites, and how long each may take.
const (
	pings      = 9
	pingWithin = time.Second
)

// measurePaths pings over all links, both ways, at the same time.
func measurePaths(ctx context.Context, hosts []*netlab.Host) (paths, error) {
	out := make(paths, len(hosts))
	errs := make([]error, len(hosts)*len(hosts))
	var all sync.WaitGroup
	for i, from := range hosts {
		out[i] = make([]time.Duration, len(hosts))
		for j, to := range hosts {
			if i == j {
				continue
			}
			all.Go(func() {
				took, err := from.Ping(ctx, to, pings, pingWithin)
				errs[i*len(hosts)+j] = err
				out[i][j] = medianOf(took)
			})
		}
	}
	all.Wait()
	return out, errors.Join(errs...)
}

func medianOf(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(took))[len(took)/2]
}

// commit is how long an entry takes from the leader until a majority has it: a round trip to
// the farthest site of the nearest majority.
func (p paths) commit(leader int) time.Duration {
	others := slices.Clone(p[leader])
	others = slices.Delete(others, leader, leader+1)
	slices.SortFunc(others, cmp.Compare[time.Duration])
	if len(others) == 0 {
		return 0
	}
	return others[len(p)/2-1]
}

// submitted is the least that an acknowledgement at a site takes: a round trip to the
// leader, if it is another site, and the commit.
func (p paths) submitted(at, leader int) time.Duration { return p[at][leader] + p.commit(leader) }

// started is the least until a task that a site has published begins at another one.
func (p paths) started(owner, leader, executor int) time.Duration {
	return p[owner][leader]/2 + p.commit(leader) + p[leader][executor]/2
}
