package command

import (
	"errors"
	"maps"
	"regexp"
	"strings"
	"testing"
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
	set := l.Pairs()
	for key, value := range want {
		if got, ok := set.Get(key); got != value || !ok {
			t.Errorf("%s: %q %v", key, got, ok)
		}
	}
	for _, key := range []string{"", "A", "b", "zonf", "zone="} {
		if got, ok := set.Get(key); ok {
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

// selectorForm matches the canonical form of a selector.
var selectorForm = regexp.MustCompile(`^(!?)([^!=( ]+)(?:(!?)=(.*)| (not)?in \((.*)\))?$`)

// FuzzParseSelector checks that whatever is accepted has one form, which is accepted unchanged.
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
		if err != nil || again.String() != one || CheckSelectors([]string{one}) != nil {
			t.Fatalf("%q is %q, which is %q, %v", text, one, again.String(), err)
		}
		if !selectorForm.MatchString(one) {
			t.Fatalf("%q", one)
		}
	})
}
