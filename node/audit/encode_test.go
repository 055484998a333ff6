package audit

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEntriesAreJSON: an entry is written as encoding/json does, whatever who asked put into it.
func TestEntriesAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.SampledFrom([]string{"", "alice", "DELETE /v1/jobs/:id", `"\`, "<&>", "\x7f\x00\n", "\u2028", "\xff", "é"}), rapid.String(),
		)
		e := Entry{
			Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
			User: text.Draw(t, "user"), Role: text.Draw(t, "role"), Token: text.Draw(t, "token"), Action: text.Draw(t, "action"),
			Targets: rapid.SliceOfN(text, 0, 3).Draw(t, "targets"), Status: rapid.IntRange(-1, 600).Draw(t, "status"),
			Asked: text.Draw(t, "asked"), Why: text.Draw(t, "why"), More: rapid.IntRange(0, 3).Draw(t, "more"),
		}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.appendTo(nil); string(got) != string(want) {
			t.Fatalf("%s\nwant %s", got, want)
		}
	})
}
