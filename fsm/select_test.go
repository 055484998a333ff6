package fsm

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestAdmitsIsNaive compares the single walk over labels and selectors with checking each selector by itself.
func TestAdmitsIsNaive(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	rapid.Check(t, func(t *rapid.T) {
		l, err := command.LabelsOf(rapid.MapOfN(name, rapid.SampledFrom([]string{"", "x", "y", "z"}), 0, 5).Draw(t, "labels"))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for range rapid.IntRange(0, 5).Draw(t, "selectors") {
			r := command.Selector{
				Key: name.Draw(t, "key"), Not: rapid.Bool().Draw(t, "not"),
				Values: rapid.SliceOfNDistinct(
					rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3, rapid.ID,
				).Draw(t, "values"),
			}
			slices.Sort(r.Values)
			list = append(list, r.String())
		}
		slices.Sort(list)
		list = slices.Compact(list)
		j := command.JobSpec{Num: 1, Count: 1, Need: command.Resources{MilliCPU: 1}, MaxAttempts: 1, Selectors: list}
		if err := j.Validate(); err != nil {
			t.Fatal(err)
		}
		h := j.Shape()
		set := l.Pairs()
		want := oracleSelects(&machine{labels: &labelSet{labels: l, pairs: set}}, list)
		if got := j.Admits(l); got != want || (h.Unmet(set) == 0) != want || (len(h.Lacking(set)) == 0) != want {
			t.Fatalf("%q and %q: %v, %d unmet, lacks %q", l, list, got, h.Unmet(set), h.Lacking(set))
		}
	})
}

// selecting makes jobs of many requirements with sixteen selectors wait, and returns an offer of machines, each of
// which has its own labels and satisfies fifteen of the selectors.
func (w *world) selecting(site string, classes, machines int) *command.Offer {
	var jobs []command.JobSpec
	for i := range classes {
		j := w.job(site, 1)
		for k := range command.MaxSelectors - 1 {
			j.Selectors = append(j.Selectors, fmt.Sprintf("os notin (a%c%c%c,bb,cc,dd)", 'a'+k, 'a'+i%26, 'a'+i/26))
		}
		j.Selectors = append(j.Selectors, "os=windows")
		jobs = append(jobs, j)
	}
	w.submit(site, jobs...)
	o := &command.Offer{Version: 1}
	for i := range machines {
		o.Machines = append(o.Machines, command.Machine{
			Name: fmt.Sprintf("m%04d", i), Resources: command.Resources{MilliCPU: 1000},
			Labels: command.Labels(fmt.Sprintf("hostname=h%04d,os=linux", i)),
		})
	}
	return o
}

// TestSelectorsAreCounted: comparing 250 requirements of sixteen selectors with 1000 machines that have their own
// labels used to be one step each, and one entry of 360 ms. What a class remembers of labels does not count, so a
// restored replica stops where others do.
func TestSelectorsAreCounted(t *testing.T) {
	const classes, machines, bound = 20, 2 * verdicts, 3000
	w := newWorld(t, params(), "a", "b")
	o := w.selecting("a", classes, machines)
	total := uint64(0)
	cmds := []command.Command{w.cmd("b", o)}
	for first := true; first || w.s.unfinished(); first = false {
		twin, err := reborn(w.s)
		if err != nil {
			t.Fatal(err)
		}
		w.one(w.s, bound, cmds...)
		w.one(twin, bound, cmds...)
		cmds = nil
		if used := w.s.Steps().Used; twin.Steps().Used != used || twin.Hash() != w.s.Hash() {
			t.Fatalf("%d steps, restored %d", used, twin.Steps().Used)
		} else if used > 2*bound {
			t.Errorf("%d steps in one entry", used)
		} else {
			total += used
		}
	}
	if least := uint64(classes * machines * command.MaxSelectors * stepRule); total < least {
		t.Errorf("%d steps, the selectors alone are %d", total, least)
	}
}
