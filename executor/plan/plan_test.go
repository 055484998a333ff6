package plan

import "testing"

// TestIs: no other command is that of a plan, and no record is too large to be read.
func TestIs(t *testing.T) {
	if !Is(Command()) || Is([]string{Program}) || Is(nil) || Is([]string{"sh", Verb}) {
		t.Error("Is")
	}
	if _, err := ParseRecord(make([]byte, MaxRecord+1)); err == nil {
		t.Error("a record of any size is read")
	}
}
