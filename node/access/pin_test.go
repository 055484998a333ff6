package access

import (
	"crypto/sha256"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A pin goes with a token's text, proves nothing, and is in its checksum.
func TestPins(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := ReadText(filepath.Join(dir, OperatorFile))
	if err != nil {
		t.Fatal(err)
	}
	pin, other := Pin(sha256.Sum256([]byte("key"))), Pin(sha256.Sum256([]byte("another")))
	if err = s.PinIn(dir, &pin); err != nil {
		t.Fatal(err)
	}
	pinned, err := ReadText(filepath.Join(dir, OperatorFile))
	if bare, got, cause := Split(pinned); err != nil || cause != nil || bare != before || got == nil || *got != pin {
		t.Errorf("the operator's: %v, %v, %v", got, err, cause)
	}
	swapped, err := WithPin(pinned, &other)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"bare": before, "pinned": pinned, "another pin": swapped, "capitals": strings.ToUpper(pinned)} {
		if got, err := s.Find(text); err != nil || got.Role != Operator {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range len(pinned) - len(Prefix) {
		i += len(Prefix)
		letter := "a"
		if pinned[i] == 'a' {
			letter = "b"
		}
		if err := Check(pinned[:i] + letter + pinned[i+1:]); err == nil {
			t.Fatalf("letter %d is changed, and it is taken", i)
		}
		if err := Check(pinned[:i]); err == nil && i != len(pinned) {
			t.Fatalf("%d letters are taken", i)
		}
	}
	made, _ := create(t, s, ReadOnly, time.Time{})
	if _, got, err := Split(made); err != nil || got == nil || *got != pin {
		t.Errorf("a new one: %v, %v", got, err)
	}
	if err = s.PinIn(dir, nil); err != nil {
		t.Fatal(err)
	}
	if now, err := ReadText(filepath.Join(dir, OperatorFile)); err != nil || now != before {
		t.Errorf("without a pin again: %v", err)
	}
}
