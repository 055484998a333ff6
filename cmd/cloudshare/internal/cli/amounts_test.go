package cli

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// TestAmounts: milli-cores times milliseconds become core-hours where they are
// that, and stay what they are elsewhere.
func TestAmounts(t *testing.T) {
	live := wire.Policy{Policy: "SIMPL_DIRECT", RateCPU: 1, QuantumMs: 1}
	for sum, want := range map[string]string{
		"0": "0", "-0": "0", "3600000000": "1.00 core-h", "8460000000": "2.35 core-h", "-8460000000": "-2.35 core-h",
		"48000000": "0.013 core-h", "3000000": "0.00083 core-h", "-3600000": "-0.0010 core-h", "3600": "0.000001 core-h", "17": "0",
		"170141183460469231731687303715884105727": "47261439850130342147690917698.86 core-h",
		"x": "x", "": "", "1e9": "1e9", strings.Repeat("9", 49): strings.Repeat("9", 49),
	} {
		if want == "0" {
			want = "0 core-h"
		}
		if got := (Amounts{live}).Standing(sum); got != want {
			t.Errorf("%s: %s, want %s", sum, got, want)
		}
	}
	for _, c := range []struct {
		change               func(p *wire.Policy)
		unit, standing, used string
	}{
		{func(*wire.Policy) {}, "core-hours", "1.00 core-h", "1.00 core-h"},
		{func(p *wire.Policy) { p.Policy = "ROUND_ROBIN" }, "core-hours", "1.00 core-h", "1.00 core-h"},
		{func(p *wire.Policy) { p.Policy = "ORIG_DIRECT" }, "raw", "3600000000", "1.00 core-h"},
		{func(p *wire.Policy) { p.Policy = "of a later version" }, "raw", "3600000000", "1.00 core-h"},
		{func(p *wire.Policy) { p.RateMem = 1 }, "raw", "3600000000", "3600000000"},
		{func(p *wire.Policy) { p.RateGPU = 1 }, "raw", "3600000000", "3600000000"},
		{func(p *wire.Policy) { p.RateCPU = 2 }, "raw", "3600000000", "3600000000"},
		{func(p *wire.Policy) { p.QuantumMs = 1000 }, "raw", "3600000000", "3600000000"},
	} {
		p := live
		c.change(&p)
		in := Amounts{p}
		if u, s, used := in.Unit("raw"), in.Standing("3600000000"), in.Used("3600000000"); u != c.unit || s != c.standing || used != c.used {
			t.Errorf("%+v: %s, %s, %s", p, u, s, used)
		}
	}
}
