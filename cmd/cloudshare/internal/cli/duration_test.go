package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// A refusal names examples, in no language's words, and help shows no default of nothing.
func TestDurationFlag(t *testing.T) {
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	var long, none time.Duration
	DurationVar(f, &long, "long", 24*time.Hour, "how long")
	DurationVar(f, &none, "none", 0, "how long")
	if use := f.FlagUsages(); !strings.Contains(use, "--long duration   how long (default 24h0m0s)") || strings.Count(use, "default") != 1 {
		t.Error(use)
	}
	if err := f.Parse([]string{"--long", "2w"}); err != nil || long != 14*24*time.Hour || none != 0 {
		t.Errorf("%v, %v, %v", long, none, err)
	}
	err := f.Parse([]string{"--long", "90x"})
	if err == nil || !strings.Contains(err.Error(), "90d, 2w") || strings.Contains(err.Error(), "time:") {
		t.Errorf("refused by: %v", err)
	}
}
