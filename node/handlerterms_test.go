package node

import (
	"strings"
	"testing"
)

func TestTermsValidate(t *testing.T) {
	for want, bad := range map[string]Terms{
		"label site is implied":            {Labels: map[string]string{"site": "b"}},
		"label cloudshare/files-16g is":    {Labels: map[string]string{"cloudshare/files-16g": "all.sites"}},
		"label cloudshare/network is":      {Labels: map[string]string{"cloudshare/network": "all.host"}},
		"and 8 of the broker's own count":  {Labels: map[string]string{"gpu": strings.Repeat("x", 64)}},
		"label handler is implied":         {Labels: map[string]string{"handler": "b"}},
		"tasks -1: must be 0 to 1000000":   {Tasks: -1},
		`labels: out of bounds: value "-"`: {Labels: map[string]string{"gpu": "-"}},
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad, err, want)
		}
	}
	if err := (Terms{Labels: map[string]string{"gpu": "a100", "os": ""}, Tasks: 9}).Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]string{{"gpu"}, {"gpu=a", "gpu=b"}, {"=a"}, {"a=b=c"}, {""}} {
		if l, err := ParseLabels(bad); err == nil {
			t.Errorf("%q: %v", bad, l)
		}
	}
}
