package jobcmd

import (
	"slices"
	"testing"
)

func TestSplitSelectors(t *testing.T) {
	got := splitSelectors([]string{"gpu=a100,zone in (a,b),!old", "x"})
	if want := []string{"gpu=a100", "zone in (a,b)", "!old", "x"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
