package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// siteCount of most figures.
const siteCount = 3

// startSites starts a fresh federation for one section, on the LAN profile. The brokers get environ besides.
func startSites(
	ctx context.Context, env environment, name string, sites, cores int, environ ...string,
) (*testbed.Federation, error) {
	dir := filepath.Join(env.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil { // a section may have mounted disks in it
		return nil, fmt.Errorf("make folder of %s: %w", name, err)
	}
	fed, err := testbed.Start(ctx, testbed.Options{
		Binary: env.binary, Dir: dir, Sites: sites, Cores: cores, Coordination: env.coordination, ZK: env.zk,
		ZKAuth: env.zkAuth, Env: environ,
	})
	if err != nil {
		return nil, fmt.Errorf("start federation: %w", err)
	}
	return fed, nil
}

// startWhole starts a federation in which every site votes.
func startWhole(
	ctx context.Context, env environment, name string, sites, cores int, environ ...string,
) (*testbed.Federation, error) {
	fed, err := startSites(ctx, env, name, sites, cores, environ...)
	if err != nil {
		return nil, err
	}
	if err := awaitWhole(ctx, fed); err != nil {
		return nil, errors.Join(err, fed.Stop())
	}
	return fed, nil
}

// wholeLimit bounds the wait for a whole federation: five sites have become
// voters after two promotions of three stable seconds each.
const wholeLimit = 45 * time.Second

// votersOf is how many of a federation's sites vote: an odd number, five at most.
func votersOf(fed *testbed.Federation) int { return min(5, (len(fed.Sites)+1)/2*2-1) }

// awaitWhole waits until all brokers have caught up and follow one leader, to
// which every site is present, and as many vote as may.
func awaitWhole(ctx context.Context, fed *testbed.Federation) error {
	ctx, cancel := context.WithTimeout(ctx, wholeLimit)
	defer cancel()
	return awaitWholeUntil(ctx, fed)
}

// awaitWholeUntil waits for as long as ctx lasts.
func awaitWholeUntil(ctx context.Context, fed *testbed.Federation) error {
	return testbed.Await(ctx, "a whole federation", func() error {
		var lead string
		for _, s := range fed.Sites {
			if err := s.Ready(ctx); err != nil {
				return err
			}
			st, err := s.Status(ctx)
			switch {
			case err != nil:
				return err
			case lead == "":
				lead = st.Leader
			}
			if st.Leader == "" || st.Leader != lead || len(st.Voters) != votersOf(fed) {
				return fmt.Errorf("%s follows %q with voters %v, %s follows %q", s.Name, st.Leader, st.Voters, fed.Sites[0].Name, lead)
			}
		}
		return allPresent(ctx, fed, lead)
	})
}

// allPresent asks the leader.
func allPresent(ctx context.Context, fed *testbed.Federation, lead string) error {
	for _, asked := range fed.Sites {
		if asked.Name != lead {
			continue
		}
		votes := 0
		for _, s := range fed.Sites {
			info, err := asked.Info(ctx, s.Name)
			switch {
			case err != nil:
				return err
			case info.State != "alive":
				return fmt.Errorf("%s is %s", s.Name, info.State)
			case info.Voter:
				votes++
			}
		}
		if votes != votersOf(fed) {
			return fmt.Errorf("%d sites vote, %d may", votes, votersOf(fed))
		}
	}
	return nil
}

// pause waits a while inside a measurement.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mustJSON encodes a value of our own types, which cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
