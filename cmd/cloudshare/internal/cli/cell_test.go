package cli

import "testing"

// Found by review: a command with U+202E in it turned its row round.
func TestCellsShowNothingThatHides(t *testing.T) {
	if got := Cell("sh\x1b[31m \u202egnp.exe\u200b\u2028 é 漢"); got != "sh [31m  gnp.exe   é 漢" {
		t.Errorf("%q", got)
	}
}
