package access

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestFoundAgain: a text that was found before is found without being read again, in whatever form it was sent, and as
// little as before once its token is revoked or has ended. What was not found is not remembered.
func TestFoundAgain(t *testing.T) {
	s, err := Open(t.TempDir() + "/tokens")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.now = func() time.Time { return now }
	text, made, err := s.Create(Token{Name: "ci", User: "alice", Role: User, Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range []string{text, strings.ToUpper(text), " " + text + "\n"} {
		for range 2 {
			if got, err := s.Find(sent); err != nil || got.ID != made.ID {
				t.Errorf("%q: %v, %v", sent, got.ID, err)
			}
		}
	}
	if _, err := s.Find(text[:len(text)-1] + "!"); err == nil || len(s.sent) != 3 {
		t.Errorf("a wrong text: %v; %d texts are remembered, want 3", err, len(s.sent))
	}
	now = now.Add(2 * time.Hour)
	if _, err := s.Find(text); !errors.Is(err, ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	now = now.Add(-2 * time.Hour)
	if err := s.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(text); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoked: %v", err)
	}
}
