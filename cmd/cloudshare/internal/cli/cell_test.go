package cli

import (
	"testing"
	"time"
)

// Found by review: a command with U+202E in it turned its row round.
func TestCellsShowNothingThatHides(t *testing.T) {
	if got := Cell("sh\x1b[31m \u202egnp.exe\u200b\u2028 é 漢"); got != "sh [31m  gnp.exe   é 漢" {
		t.Errorf("%q", got)
	}
}

// TestCellOfTimes: a time is shown alike whether or not it may be missing.
func TestCellOfTimes(t *testing.T) {
	at := time.Date(2026, 11, 27, 7, 5, 35, 838851180, time.Local)
	if got := Cell(at); got != "2026-11-27 07:05:35" || got != Cell(&at) {
		t.Errorf("%q, and %q if it may be missing", got, Cell(&at))
	}
}
