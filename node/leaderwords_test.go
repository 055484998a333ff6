package node_test

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
)

func TestLeaderWords(t *testing.T) {
	ms := func(a, b, c, d int) map[string]time.Duration {
		return map[string]time.Duration{
			"a": time.Duration(a) * time.Millisecond, "b": time.Duration(b) * time.Millisecond,
			"c": time.Duration(c) * time.Millisecond, "d": time.Duration(d) * time.Millisecond,
		}
	}
	for _, c := range []struct {
		leader string
		at     coord.Placement
		want   string
	}{
		{"a", coord.Placement{Majorities: ms(1, 2, 3, 4), Turns: []string{"a", "b", "c", "d"}}, "a majority within 1.0 ms; in turn with b, c, d"},
		{"b", coord.Placement{Majorities: ms(10, 11, 150, 80), Turns: []string{"a", "b"}}, "a majority within 11 ms; in turn with a; d would have 80 ms; c would have 150 ms"},
		{"a", coord.Placement{Majorities: ms(10, 80, 80, 150), Turns: []string{"a"}}, "a majority within 10 ms; no other voter is as near, so it leads on; b would have 80 ms; c would have 80 ms; d would have 150 ms"},
		{"d", coord.Placement{Majorities: ms(10, 10, 80, 150), Turns: []string{"a", "b"}}, "a majority within 150 ms; a would have 10 ms; b would have 10 ms; c would have 80 ms"},
		{"e", coord.Placement{Majorities: ms(10, 10, 80, 150)}, ""},
		{"", coord.Placement{}, ""},
	} {
		if got := node.LeaderWords(c.leader, c.at); got != c.want {
			t.Errorf("%s: %q\nwant %q", c.leader, got, c.want)
		}
	}
}
