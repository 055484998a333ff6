package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestNetworksAreMatched: a job that needs a network goes to a machine that gives one to everybody's tasks, or to
// its own site's; the reasons say so in words, not by the label.
func TestNetworksAreMatched(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	lends := func(site, label string) {
		o := w.offering(site, 1)
		o.Machines[0].Labels = command.Labels(command.NetworkLabel + "=" + label)
		w.must(site, o)
	}
	lends("b", "b")
	lends("c", "c")
	needs := w.job("a", 1)
	needs.Selectors = []string{command.NetworkSelector("a")}
	w.submit("a", needs)
	id := command.JobID{Site: "a", Num: 1}
	reason := func(want string) {
		t.Helper()
		if j, _ := w.s.Job(id); j.State != Queued || j.Reason != want {
			t.Fatalf("%s: %q, want %q", j.State, j.Reason, want)
		}
	}
	reason("its job needs a network, which sites b, c do not give to others' tasks (sandbox.network)")
	v, _ := w.s.Why(id)
	if x := v.Sites[1]; x.Why != HinderedNetwork || x.Why.String() != "network" || x.Lacks != "a network for others' tasks (sandbox.network)" {
		t.Errorf("%+v", x)
	}
	own := w.job("b", 1)
	own.Selectors = []string{command.NetworkSelector("b")}
	w.submit("b", own)
	at := func(job command.JobID, site string) {
		t.Helper()
		for _, as := range w.s.Assignments(site) {
			if as.Job == job {
				return
			}
		}
		j, _ := w.s.Job(job)
		t.Fatalf("%s is %s (%s), not at %s", job, j.State, j.Reason, site)
	}
	at(command.JobID{Site: "b", Num: 1}, "b")
	lends("c", command.NetworkOutbound)
	at(id, "c")
}

// TestNetworkSelectorsAreKnown: what a job's own selectors may not name.
func TestNetworkSelectorsAreKnown(t *testing.T) {
	for text, want := range map[string]bool{
		command.NetworkSelector("a"): true, command.NetworkLabel: true, "!" + command.NetworkLabel: true,
		command.NetworkLabel + "=x": true, command.NetworkLabel + "!=x": true,
		command.NetworkLabel + "ed": false, "network": false, "a=" + command.NetworkSelector("b"): false,
	} {
		if command.IsNetworkSelector(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	if err := command.CheckSelectors([]string{command.NetworkSelector("a")}); err != nil {
		t.Error(err)
	}
}
