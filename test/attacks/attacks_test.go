//go:build attacks

package attacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// limit of one wait.
const limit = 45 * time.Second

// shared is the federation that is attacked: three electors, two cores each.
var shared *testbed.Federation

func TestMain(m *testing.M) {
	os.Exit(testbed.BuildAndRun(func(binary string) int {
		solo.Binary = binary
		code, err := withFederation(binary, m.Run)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}))
}

// withFederation runs the tests against it.
func withFederation(binary string, run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "cloudshare-attacked-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	shared, err = testbed.Start(context.Background(), testbed.Options{Binary: binary, Dir: dir, Sites: 3, Cores: 2})
	if err != nil {
		return 1, err
	}
	if err = threeVoters(); err == nil {
		code = run()
	}
	return code, errors.Join(err, shared.Stop())
}

// threeVoters waits until all sites vote: a group of one voter has nothing to attack.
func threeVoters() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return testbed.Await(ctx, "three voters", func() error {
		st, err := shared.Sites[0].Status(ctx)
		if err == nil && len(st.Voters) < 3 {
			err = fmt.Errorf("%v", st.Voters)
		}
		return err
	})
}

// attacked returns the federation, and checks at the test's end that nothing has come of the attack.
func attacked(t *testing.T) *testbed.Federation {
	t.Helper()
	before := record(t)
	pids := pidsOf(t)
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range shared.Sites {
				t.Logf("%s\n%s", s.Name, s.LogTail(15))
			}
		}
		if after := record(t); after != before {
			t.Errorf("it was\n%s\nand is\n%s", before, after)
		}
		if now := pidsOf(t); !slices.Equal(now, pids) {
			t.Errorf("brokers were restarted or have ended: %v became %v", pids, now)
		}
		healthy(t)
	})
	return shared
}

// healthy checks that jobs run at and from each site, and that all states are equal.
func healthy(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for i, s := range shared.Sites {
		at := shared.Sites[(i+1)%len(shared.Sites)].Name
		a, err := s.Submit(ctx, testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{at}}})
		must(t, err)
		if j, err := s.AwaitJob(ctx, a.ID, "succeeded", "failed", "lost", "cancelled"); err != nil || j.State != "succeeded" {
			t.Errorf("a job of %s for %s: %s %s, %v", s.Name, at, j.State, j.Reason, err)
		}
	}
	must(t, testbed.AwaitEqualState(ctx, shared.Sites...))
	for _, s := range shared.Sites {
		if err := s.ReportedDifference(); err != nil {
			t.Error(err)
		}
	}
}

// record is what no attack may change: who the three sites and their keys are, what is open, the policy, and whether
// they are there. What hostile members do to themselves is not in it.
func record(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out := map[string]any{}
	for _, path := range []string{"/v1/members", "/v1/sites", "/v1/policy"} {
		b, _, err := shared.Sites[0].Do(ctx, "GET", path, nil, nil)
		must(t, err)
		var v map[string]any
		must(t, json.Unmarshal(b, &v))
		if list, ok := v["items"].([]any); ok {
			var kept []any
			for _, item := range list {
				if x := lasting(item.(map[string]any)); x != nil {
					kept = append(kept, x)
				}
			}
			out[path] = kept
		} else {
			out[path] = v
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	must(t, err)
	return string(text)
}

// lasting keeps of a site or member what lasts; nil: it is none of the three.
func lasting(item map[string]any) map[string]any {
	name, _ := item["id"].(string)
	if name == "" {
		name, _ = item["site"].(string)
	}
	if !slices.ContainsFunc(shared.Sites, func(s *testbed.Site) bool { return s.Name == name }) {
		return nil
	}
	kept := map[string]any{"site": name}
	for _, field := range []string{"state", "incarnation", "key", "elector", "banned", "addresses", "generation", "recovery"} {
		kept[field] = item[field]
	}
	return kept
}

func pidsOf(t *testing.T) (pids []int) {
	t.Helper()
	for _, s := range shared.Sites {
		pid, err := s.PID()
		must(t, err)
		if !s.Alive() {
			t.Errorf("%s has ended\n%s", s.Name, s.LogTail(10))
		}
		pids = append(pids, pid)
	}
	return pids
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within bounds the waits of one step.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// await waits for a condition or ends the test.
func await(t *testing.T, what string, cond func() error) {
	t.Helper()
	must(t, testbed.Await(within(t), what, cond))
}

// dataOf is a site's data folder.
func dataOf(s *testbed.Site) string { return filepath.Join(s.Dir, "data") }

// peerOf is where a site is dialed by other brokers.
func peerOf(t *testing.T, s *testbed.Site) relay.Peer {
	t.Helper()
	addr, err := s.PeerAddress()
	must(t, err)
	return relay.Peer{Site: s.Name, Addr: addr}
}

// leader returns the site that leads.
func leader(t *testing.T) (lead *testbed.Site) {
	t.Helper()
	await(t, "a leader", func() error {
		st, err := shared.Sites[0].Status(t.Context())
		for _, s := range shared.Sites {
			if err == nil && s.Name == st.Leader {
				lead = s
				return nil
			}
		}
		return fmt.Errorf("%q leads, %w", st.Leader, err)
	})
	return lead
}

// stranger is somebody who knows all that a member does, and whom nobody has admitted.
func stranger(t *testing.T, site string) *intruder.Intruder {
	t.Helper()
	i, err := intruder.Stranger(site, dataOf(shared.Sites[2]))
	must(t, err)
	return i
}

// key is who has the key of a site's broker.
func keyOf(t *testing.T, s *testbed.Site) *intruder.Intruder {
	t.Helper()
	i, err := intruder.Member(s.Name, dataOf(s))
	must(t, err)
	return i
}
