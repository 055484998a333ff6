package sitecmd

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

func TestComparedText(t *testing.T) {
	for want, c := range map[string]wire.Compared{
		"-":                             {},
		"the same as a b at entry 7":    {Index: 7, With: []string{"a", "b"}},
		"the same as nobody at entry 7": {Index: 7},
		"the same as a at entry 7; DIFFERS from b; two states were SIGNED by c": {
			Index: 7, With: []string{"a"}, Differs: []string{"b"}, Liars: []string{"c"},
		},
	} {
		if got := comparedText(c); got != want {
			t.Errorf("%+v is shown as %q, want %q", c, got, want)
		}
	}
}
