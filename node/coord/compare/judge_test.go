package compare

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/coord"
)

// One letter is one site's hash; self is always a.
func hashes(said map[string]string) map[string]Hash {
	out := map[string]Hash{}
	for site, h := range said {
		out[site] = Hash{h[0]}
	}
	return out
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		voters []string
		said   map[string]string // others'; own is "x"
		wrong  bool
		known  bool
		differ string
	}{
		"alone":                                  {[]string{"a"}, nil, false, true, "[]"},
		"all agree":                              {[]string{"a", "b", "c"}, map[string]string{"b": "x", "c": "x"}, false, true, "[]"},
		"the other two agree":                    {[]string{"a", "b", "c"}, map[string]string{"b": "y", "c": "y"}, true, true, "[b c]"},
		"the other two differ from each other":   {[]string{"a", "b", "c"}, map[string]string{"b": "y", "c": "z"}, false, false, "[b c]"},
		"one hostile voter alone":                {[]string{"a", "b", "c"}, map[string]string{"b": "y"}, false, false, "[b]"},
		"one voter differs, one agrees":          {[]string{"a", "b", "c"}, map[string]string{"b": "y", "c": "x"}, false, true, "[b]"},
		"one of two voters":                      {[]string{"a", "b"}, map[string]string{"b": "y"}, false, false, "[b]"},
		"two of four are no majority":            {[]string{"a", "b", "c", "d"}, map[string]string{"b": "y", "c": "y"}, false, false, "[b c]"},
		"three of five, two silent":              {[]string{"a", "b", "c", "d", "e"}, map[string]string{"b": "y", "c": "y", "d": "y"}, true, true, "[b c d]"},
		"two of five, two silent":                {[]string{"a", "b", "c", "d", "e"}, map[string]string{"b": "y", "c": "y"}, false, false, "[b c]"},
		"strangers, however many":                {[]string{"a", "b", "c"}, map[string]string{"s": "y", "t": "y", "u": "y", "v": "y"}, false, false, "[s t u v]"},
		"strangers do not help a voter":          {[]string{"a", "b", "c"}, map[string]string{"s": "y", "t": "y", "b": "y"}, false, false, "[b s t]"},
		"no voter myself, a majority differs":    {[]string{"b", "c", "d"}, map[string]string{"b": "y", "c": "y"}, true, true, "[b c]"},
		"no voter myself, the only voter":        {[]string{"b"}, map[string]string{"b": "y"}, true, true, "[b]"},
		"no voter myself, one differs":           {[]string{"b", "c", "d"}, map[string]string{"b": "y"}, false, false, "[b]"},
		"a voter named twice counts once":        {[]string{"a", "b", "b"}, map[string]string{"b": "y"}, false, false, "[b]"},
		"nobody speaks for this member":          {[]string{"a", "b", "c"}, map[string]string{"a": "y", "b": "y"}, false, false, "[b]"},
		"nobody is there":                        {nil, nil, false, false, "[]"},
		"a member that does not vote differs":    {[]string{"a", "b", "c"}, map[string]string{"b": "x", "n": "y"}, false, true, "[n]"},
		"non-voters agree with me, voters don't": {[]string{"a", "b", "c"}, map[string]string{"b": "y", "c": "y", "n": "x", "o": "x"}, true, true, "[b c]"},
	} {
		v := Judge("a", Hash{'x'}, c.voters, hashes(c.said))
		if v.Wrong != c.wrong || v.Known != c.known || fmt.Sprint(v.Differ) != c.differ {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Whatever is said: only a strict majority of all voters stops a member, none of
// those that agree on a majority's hash stops, and the order of what is said does
// not matter.
func TestJudgeProperties(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	rapid.Check(t, func(t *rapid.T) {
		voters := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 5, rapid.ID).Draw(t, "voters")
		said := map[string]Hash{}
		for _, n := range names {
			if h := rapid.IntRange(0, 3).Draw(t, n); h > 0 {
				said[n] = Hash{byte(h)}
			}
		}
		stopped := map[string]bool{}
		for _, self := range names {
			own, ok := said[self]
			if !ok {
				continue
			}
			v := Judge(self, own, voters, said)
			votes := 0
			for _, x := range voters {
				if h, ok := said[x]; ok && v.Known && h == v.Majority {
					votes++
				}
			}
			if v.Known != (2*votes > len(voters)) || v.Wrong != (v.Known && v.Majority != own) ||
				len(v.Agree) != votes {
				t.Fatalf("%s of %v: %+v of %v", self, voters, v, said)
			}
			if slices.Contains(v.Differ, self) || slices.Contains(v.Same, self) {
				t.Fatalf("%s is compared with itself: %+v", self, v)
			}
			stopped[self] = v.Wrong
		}
		left := 0
		for _, x := range voters {
			if !stopped[x] {
				left++
			}
		}
		if 2*left <= len(voters) {
			t.Fatalf("%v stop of the voters %v: a quorum must be left", stopped, voters)
		}
	})
}

func TestJudgeAll(t *testing.T) {
	list := func(hashes string) (out []coord.Checkpoint) { // entry i+1 has the i-th letter, "." none
		for i, h := range hashes {
			if h != '.' {
				out = append(out, coord.Checkpoint{Entry: uint64(i + 1), Hash: Hash{byte(h)}, Hashed: true})
			}
		}
		return out
	}
	for _, c := range []struct {
		own    string
		said   map[string]string
		wrong  uint64
		newest string
	}{
		{"xxx", map[string]string{"b": "xxx", "c": "xx."}, 0, "b3 c2"},
		{"xxx", map[string]string{"b": "xyy", "c": "xyz"}, 2, "b3! c3!"},
		{"xxx", map[string]string{"b": "xyy", "c": "xx."}, 0, "b3! c2"},
		{"xx..", map[string]string{"b": "..yy", "c": "..yy"}, 0, ""},     // nothing in common
		{"xxyy", map[string]string{"b": "zzyy", "c": "zz"}, 2, "b4 c2!"}, // has come back, but was wrong
		{"", map[string]string{"b": "xx", "c": "xx"}, 0, ""},
	} {
		said := map[string][]coord.Checkpoint{"a": list("qqqq")} // a liar in this member's name
		for site, h := range c.said {
			said[site] = list(h)
		}
		f := JudgeAll("a", list(c.own), []string{"a", "b", "c"}, said)
		newest := ""
		for _, site := range []string{"a", "b", "c"} {
			if n, ok := f.Newest[site]; ok {
				newest += fmt.Sprintf(" %s%d", site, n[States].Entry)
				if _, _, differs := n.Differs(); differs {
					newest += "!"
				}
			}
		}
		if f.Wrong != (c.wrong > 0) || f.Entry != c.wrong || newest != "" && newest[1:] != c.newest || newest == "" &&
			c.newest != "" {
			t.Errorf("%s with %v: %+v, newest%s", c.own, c.said, f, newest)
		}
	}
}
