package access

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A use is known by its hour, over a restart, too; within one hour nothing is written again.
func TestLastUseOfAToken(t *testing.T) {
	s := open(t)
	text, made := create(t, s, User, time.Time{})
	_, unused := create(t, s, User, time.Time{})
	s.now = func() time.Time { return time.Date(2026, 5, 6, 7, 59, 58, 0, time.UTC) }
	hour := time.Date(2026, 5, 6, 7, 0, 0, 0, time.UTC)
	if token, err := s.Find(text); err != nil || !token.Used.Equal(hour) {
		t.Fatalf("%v, %v", token.Used, err)
	}
	file := filepath.Join(filepath.Dir(s.path), UsesFile)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a request wrote a file: %v", err)
	}
	wantUses(t, s, map[string]time.Time{made.ID: hour, unused.ID: {}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	s.now = func() time.Time { return hour.Add(time.Minute) }
	if _, err := s.ByID(made.ID); err != nil || s.uses.due != nil {
		t.Errorf("the same hour is to be written again: %v", err)
	}
	again, err := Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	wantUses(t, again, map[string]time.Time{made.ID: hour, unused.ID: {}})
	again.now = func() time.Time { return hour.Add(time.Hour) }
	if _, err := again.ByID(made.ID); err != nil || again.uses.due == nil {
		t.Errorf("the next hour is not to be written: %v", err)
	}
	wantUses(t, again, map[string]time.Time{made.ID: hour.Add(time.Hour)})
}

func wantUses(t *testing.T, s *Store, want map[string]time.Time) {
	t.Helper()
	for _, token := range s.List() {
		if at, ok := want[token.ID]; ok && !token.Used.Equal(at) {
			t.Errorf("%s was used at %v, want %v", token.ID, token.Used, at)
		}
	}
}

// What is refused is no use; of a revoked token nothing is kept, and a damaged file keeps no broker from starting.
func TestUsesThatDoNotCount(t *testing.T) {
	s := open(t)
	text, made := create(t, s, User, time.Now().Add(time.Hour))
	s.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, err := s.Find(text); err == nil {
		t.Fatal("an expired token is taken")
	}
	if used := s.uses.of(made.ID); !used.IsZero() {
		t.Errorf("an expired token was used at %v", used)
	}
	s.now = time.Now
	if _, err := s.Find(text); err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(made.ID); err != nil || !s.uses.of(made.ID).IsZero() {
		t.Errorf("%v; kept of a revoked token: %v", err, s.uses.of(made.ID))
	}
	create(t, s, User, time.Time{})
	if err := os.WriteFile(s.uses.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(s.path); err != nil || len(again.List()) != 1 {
		t.Errorf("with damaged uses: %v", err)
	}
}
