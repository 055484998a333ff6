package command

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestValidSiteIsADNSLabel(t *testing.T) {
	label := regexp.MustCompile(`\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\z`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-z0-9-]{0,70}|[a-zA-Z0-9_.\n-]{0,5}`).Draw(t, "s")
		if got := ValidSite(s); got != label.MatchString(s) {
			t.Fatalf("%q: %t", s, got)
		}
	})
}
