package daemon

import (
	"slices"
	"testing"
)

func TestTextInTheCommandLine(t *testing.T) {
	for _, c := range []struct {
		join       string
		args, want []string
	}{
		{"csi_a", []string{"cloudshare", "broker", "--join", "csi_a"}, []string{"cloudshare", "broker", "--join", hidden}},
		{"csi_a", []string{"cloudshare", "broker", "--join=csi_a"}, []string{"cloudshare", "broker", "--join=" + hidden}},
		{"csi_a", []string{"cloudshare", "broker"}, nil}, // from the environment or the file
		{"@f", []string{"cloudshare", "broker", "--join", "@f"}, nil},
		{"-", []string{"cloudshare", "broker", "--join", "-"}, nil},
		{"", []string{"cloudshare", "broker"}, nil},
	} {
		got, found := withoutText(c.args, c.join)
		if found != (c.want != nil) || found && !slices.Equal(got, c.want) {
			t.Errorf("%q in %q: %q, %v", c.join, c.args, got, found)
		}
	}
}
