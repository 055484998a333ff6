package fsm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSelector(t *testing.T) {
	for text, want := range map[string]string{
		"gpu":                    "gpu",
		"!gpu":                   "!gpu",
		"gpu=a100":               "gpu=a100",
		"gpu==a100":              "gpu=a100",
		" gpu = a100 ":           "gpu=a100",
		"gpu=":                   "gpu=",
		"gpu!=a100":              "gpu!=a100",
		"gpu in (b, a,b)":        "gpu in (a,b)",
		"gpu in (a)":             "gpu=a",
		"gpu notin (a)":          "gpu!=a",
		"gpu  notin  (b,a)":      "gpu notin (a,b)",
		"k8s.io/a.b_C-d=0.1_x-Y": "k8s.io/a.b_C-d=0.1_x-Y",
	} {
		if r, err := ParseSelector(text); err != nil || r.String() != want {
			t.Errorf("%q: %q, %v, want %q", text, r.String(), err, want)
		}
	}
	for _, text := range []string{
		"", "!", "=", "=a", "-a=1", "a-=1", "a b", "a=b c", "a=b=c", "a in", "a in ()", "a in (b", "a in b)", "a out (b)", "in (b)", "a in (b,)",
		"a in (b)(c)", "!a=b", "! a", "A.b/c", "/a", "a/", "a/b/c", "a=ü", "a=b\n", "a>1", "a,b", strings.Repeat("a", 64), "a=" + strings.Repeat("b", 64),
		"a in (" + strings.Repeat("b", 513) + ")", strings.Repeat("a.", 64) + "b/c", "a in (1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g,h)",
	} {
		if r, err := ParseSelector(text); !errors.Is(err, ErrOutOfBounds) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestLabels(t *testing.T) {
	want := map[string]string{"zone": "b", "arch": "amd64", "example.com/gpu": "", "a": "1"}
	l, err := LabelsOf(want)
	if err != nil || l != "a=1,arch=amd64,example.com/gpu=,zone=b" || !maps.Equal(maps.Collect(l.All()), want) {
		t.Fatalf("%q, %v", l, err)
	}
	set := readLabels(l)
	for key, value := range want {
		if got, ok := set.get(key); got != value || !ok {
			t.Errorf("%s: %q %v", key, got, ok)
		}
	}
	for _, key := range []string{"", "A", "b", "zonf", "zone="} {
		if got, ok := set.get(key); ok {
			t.Errorf("%s: %q", key, got)
		}
	}
	for _, bad := range []map[string]string{{"": "x"}, {"a": "-"}, {"a": "b,c=d"}, {"a=b": ""}, {"a": strings.Repeat("v", 64)}, tooMany()} {
		if l, err := LabelsOf(bad); !errors.Is(err, ErrOutOfBounds) {
			t.Errorf("%v: %q %v", bad, l, err)
		}
	}
}

func tooMany() map[string]string {
	m := map[string]string{}
	for i := range MaxLabels + 1 {
		m["k"+string(rune('A'+i))+"x"] = ""
	}
	return m
}

// TestAdmitsIsNaive compares the one walk over labels and selectors with a look at
// each selector by itself.
func TestAdmitsIsNaive(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	rapid.Check(t, func(t *rapid.T) {
		l, err := LabelsOf(rapid.MapOfN(name, rapid.SampledFrom([]string{"", "x", "y", "z"}), 0, 5).Draw(t, "labels"))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for range rapid.IntRange(0, 5).Draw(t, "selectors") {
			r := Selector{Key: name.Draw(t, "key"), Not: rapid.Bool().Draw(t, "not"), Values: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3, rapid.ID).Draw(t, "values")}
			slices.Sort(r.Values)
			list = append(list, r.String())
		}
		slices.Sort(list)
		list = slices.Compact(list)
		j := JobSpec{Num: 1, Count: 1, Need: Resources{MilliCPU: 1}, MaxAttempts: 1, Selectors: list}
		if err := j.Validate(); err != nil {
			t.Fatal(err)
		}
		h := j.shape()
		set := readLabels(l)
		want := oracleSelects(&machine{labels: set}, list)
		if got := j.Admits(l); got != want || (h.unmet(set) == 0) != want || (h.lacking(set) == "") != want {
			t.Fatalf("%q and %q: %v, %d unmet, lacks %q", l, list, got, h.unmet(set), h.lacking(set))
		}
	})
}

// FuzzParseSelector: what is accepted has one form, which is accepted as it is.
func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{"a", "!a", "a=b", "a==b", "a != b", "a in (b,c)", "a notin ( b )", "x.y/z=1", "a in (b", "!=", "(", "a=("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseSelector(text)
		if err != nil {
			if !errors.Is(err, ErrOutOfBounds) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q", err)
			}
			return
		}
		one := r.String()
		again, err := ParseSelector(one)
		if err != nil || again.String() != one || inSelectors([]string{one}) != nil {
			t.Fatalf("%q is %q, which is %q, %v", text, one, again.String(), err)
		}
		if !oracleSelector.MatchString(one) {
			t.Fatalf("%q", one)
		}
	})
}

// selecting has jobs of many requirements with sixteen selectors wait, and returns an
// offer of machines of which each has labels of its own and satisfies fifteen of them.
func (w *world) selecting(site string, classes, machines int) *Offer {
	var jobs []JobSpec
	for i := range classes {
		j := w.job(site, 1)
		for k := range MaxSelectors - 1 {
			j.Selectors = append(j.Selectors, fmt.Sprintf("os notin (a%c%c%c,bb,cc,dd)", 'a'+k, 'a'+i%26, 'a'+i/26))
		}
		j.Selectors = append(j.Selectors, "os=windows")
		jobs = append(jobs, j)
	}
	w.submit(site, jobs...)
	o := &Offer{Version: 1}
	for i := range machines {
		o.Machines = append(o.Machines, Machine{
			Name: fmt.Sprintf("m%04d", i), Resources: Resources{MilliCPU: 1000}, Labels: Labels(fmt.Sprintf("hostname=h%04d,os=linux", i)),
		})
	}
	return o
}

// TestSelectorsAreCounted: 250 requirements of sixteen selectors compared with 1000
// machines that have labels of their own were one step each, and one entry of 360 ms. What
// a class remembers of labels does not count, so a restored replica stops where others do.
func TestSelectorsAreCounted(t *testing.T) {
	const classes, machines, bound = 20, 2 * verdicts, 3000
	w := newWorld(t, params(), "a", "b")
	o := w.selecting("a", classes, machines)
	total := uint64(0)
	cmds := []Command{w.cmd("b", o)}
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
	if least := uint64(classes * machines * MaxSelectors * stepRule); total < least {
		t.Errorf("%d steps, the selectors alone are %d", total, least)
	}
}
