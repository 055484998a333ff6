package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// mutation switches one safeguard of the product off. Its scenario must then
// break one of the rules, which shows that the scenario would notice if the
// safeguard were missing.
type mutation struct {
	name     string
	scenario string
	rules    []check.Rule
}

// mutateVar names the mutations to a binary built with the tag mutate; any
// other ignores it.
const mutateVar = "CLOUDSHARE_MUTATE"

func mutations() []mutation {
	return []mutation{
		{"no-fence", "fence", []check.Rule{check.Overlap}},
		{"no-lease-margin", "slow-supervisor", []check.Rule{check.Overlap}},
		{"no-lead-change-wait", "lead-change", []check.Rule{check.Overlap}},
		{"no-token-check", "stale-report", []check.Rule{check.TrueEnd}},
		{"no-command-window", "repeat", []check.Rule{check.Once}},
		{"no-dial-back", "phantom-heard", []check.Rule{check.Majority}},
		{"no-meant-site", "reused-address", []check.Rule{check.Majority}},
		{"no-unregistered-handover", "paused-and-lost", []check.Rule{check.Progress}},
		{"no-slow-disk-handover", "slow-leader", []check.Rule{check.Progress}},
		{"no-far-handover", "far-leader", []check.Rule{check.Progress}},
		{"no-silent-eviction", "silent", []check.Rule{check.Progress}},
		{"no-term-bound", "forged-term", []check.Rule{check.Progress}},
		{"no-request-identity", "other-name", []check.Rule{check.Progress}},
		{"no-own-gap", "own-pause", []check.Rule{check.Progress}},
		{"no-replica-compare", "fork", []check.Rule{check.SameState}},
		{"no-authorship", "hostile", []check.Rule{check.TrueEnd, check.NoPanic}},
		{"no-release-record", "chain", []check.Rule{check.TokenGrow}},
		{"no-hold-record", "chain", []check.Rule{check.ByHand}},
		// A journal that was not synced is gone, or torn so that it does not open.
		{"no-journal-sync", "power", []check.Rule{check.OneEnd, check.OneJob, check.Progress}},
	}
}

// testMutation switches a safeguard off that no play of a whole federation comes across:
// a named test must fail then.
type testMutation struct{ name, pkg, test, tags string }

func testMutations() []testMutation {
	const raftlog = "github.com/cloudshare/cloudshare/node/coord/raftlog"
	return []testMutation{
		{"no-claimed-address", raftlog, "TestStrangerMovesNobody", ""},
		{"no-leader-silence", raftlog + "/transport", "TestNameOfTheFormerLeaderRefusesNobody", ""},
		{"no-outcome-record", "github.com/cloudshare/cloudshare/node/core", "TestOutcomeIsKeptOverAStart", ""},
		{"no-authorship", "github.com/cloudshare/cloudshare/test/attacks", "TestHostileLeader", ",attacks"},
	}
}

// catch returns an error unless the test passes as it is and fails without the safeguard.
func (m testMutation) catch(ctx context.Context) error {
	if out, err := m.run(ctx, ""); err != nil {
		return fmt.Errorf("%s fails without a mutation: %w\n%s", m.test, err, out)
	}
	if out, _ := m.run(ctx, m.name); !strings.Contains(out, "--- FAIL: "+m.test) {
		return fmt.Errorf("%s was not noticed by %s:\n%s", m.name, m.test, out)
	}
	return nil
}

func (m testMutation) run(ctx context.Context, mutate string) (out string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", "mutate"+m.tags, "-count=1", "-run", "^"+m.test+"$", m.pkg)
	cmd.Env = append(os.Environ(), mutateVar+"="+mutate)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// chosen returns the mutations of these scenarios, separated by commas; "" = all.
func chosen(scenarios string) []mutation {
	return slices.DeleteFunc(mutations(), func(m mutation) bool {
		return scenarios != "" && !slices.Contains(strings.Split(scenarios, ","), m.scenario)
	})
}

// mutations plays each scenario as it is and then without its safeguard, and runs the
// tests of safeguards that are not played.
func (s stage) mutations(ctx context.Context, list []mutation, unplayed []testMutation) error {
	var err error
	if s.binary, err = testbed.Build(ctx, s.dir, "mutate"); err != nil {
		return err
	}
	s.hostileBinary = s.binary
	var errs []error
	var report []string
	for _, m := range list {
		caught, err := s.catch(ctx, m)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line := fmt.Sprintf("%-20s %-16s %s", m.name, m.scenario, caught)
		if err != nil {
			errs = append(errs, err)
			line += " " + err.Error()
		}
		report = append(report, line)
	}
	for _, m := range unplayed {
		err := m.catch(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line := fmt.Sprintf("%-20s %s", m.name, m.test)
		if err != nil {
			errs = append(errs, err)
			line += " " + err.Error()
		}
		report = append(report, line)
	}
	fmt.Println("===\n" + strings.Join(report, "\n"))
	return errors.Join(errs...)
}

// catch returns the violation that gave the mutation away.
func (s stage) catch(ctx context.Context, m mutation) (string, error) {
	p := written(pick(m.scenario))[0]
	fmt.Printf("=== %s as it is\n", m.scenario)
	found, err := s.one(ctx, p, filepath.Join(s.dir, m.scenario))
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%s fails without a mutation: %s", m.scenario, summary(found))
	}
	if err != nil {
		return "", err
	}
	fmt.Printf("=== %s with %s\n", m.scenario, m.name)
	s.mutate = m.name
	found, err = s.one(ctx, p, filepath.Join(s.dir, m.name))
	i := slices.IndexFunc(found, func(v check.Violation) bool { return slices.Contains(m.rules, v.Rule) })
	if i < 0 {
		return "", errors.Join(fmt.Errorf("%s was not noticed by %s: want one of %v, found: %s", m.name, m.scenario, m.rules, summary(found)), err)
	}
	return found[i].String(), nil
}
