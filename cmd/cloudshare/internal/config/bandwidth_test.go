package config

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// TestParseIO: the words of io.max with sizes as everywhere; what is wrong is named.
func TestParseIO(t *testing.T) {
	for text, want := range map[string]attempts.Bandwidth{
		"":                      {},
		"wbps=50Mi":             {WriteBytes: 50 << 20},
		"riops=900 rbps=1.5Gi":  {ReadBytes: 3 << 29, Reads: 900},
		" wiops=1\trbps=1Mi   ": {ReadBytes: 1 << 20, Writes: 1},
	} {
		if got, err := parseIO(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"50Mi": "must be rbps=", "wbps": "quantity", "wbps=0": "1 or more", "riops=10Mi": "number",
		"riops=-1": "1 or more", "rbps=1Mi rbps=2Mi": "twice", "wiops=99999999999999999999": "number",
	} {
		if _, err := parseIO(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

// TestOneBandwidthForAll: bare commands and containers get the same bound.
func TestOneBandwidthForAll(t *testing.T) {
	var c Config
	c.Sandbox.IO = "wbps=50Mi"
	want := attempts.Bandwidth{WriteBytes: 50 << 20}
	if bare, container := c.ForLocal().IO, c.ForContainer("").IO; bare != want || container != want {
		t.Errorf("bare commands have %+v, containers %+v, want %+v", bare, container, want)
	}
}
