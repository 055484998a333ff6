package web

import "testing"

// Found by review: a command with U+202E in it turned what stood behind it round.
func TestShortShowsNothingThatHides(t *testing.T) {
	if got := short(40, "sh\x1b[31m \u202egnp.exe\u200b\u2028 é 漢"); got != "sh [31m  gnp.exe   é 漢" {
		t.Errorf("%q", got)
	}
	if got := short(3, "漢漢漢漢"); got != "漢漢…" {
		t.Errorf("%q", got)
	}
}
