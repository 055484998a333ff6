package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), TokensFile))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s *Store, role Role, until time.Time) (string, Token) {
	t.Helper()
	text, token, err := s.Create(Token{Name: "ci", User: "alice", Role: role, Expires: until})
	if err != nil {
		t.Fatal(err)
	}
	return text, token
}

func TestLifeOfAToken(t *testing.T) {
	s := open(t)
	text, made := create(t, s, Operator, time.Time{})
	if parts := strings.Split(text, "_"); len(parts) != 4 || parts[0] != "cst" || parts[1] != made.ID ||
		len(parts[1]) != 8 || len(parts[2]) != 52 || len(parts[3]) != 7 {
		t.Errorf("%d parts of another form than cst_ID_SECRET_CRC", len(parts))
	}
	again, err := Open(s.path) // as another start
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, again} {
		got, err := s.Find(text)
		if err != nil || got.ID != made.ID || got.Role != Operator || !got.Created.Equal(made.Created) {
			t.Errorf("Find = %+v, %v", got, err)
		}
		if got, err := s.ByID(made.ID); err != nil || got.Name != "ci" || got.User != "alice" {
			t.Errorf("ByID = %+v, %v", got, err)
		}
		if list := s.List(); len(list) != 1 || list[0].ID != made.ID {
			t.Errorf("List = %v", list)
		}
	}
	var told []string
	s.OnRevoke(func(id string) {
		if _, err := s.ByID(id); !errors.Is(err, ErrUnknown) {
			t.Errorf("told before it is revoked: %v", err)
		}
		told = append(told, id)
	})
	if err := s.Revoke(made.ID); err != nil || len(told) != 1 || told[0] != made.ID {
		t.Fatal(err, told)
	}
	if _, err := s.Find(text); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoked: %v", err)
	}
	if err := s.Revoke(made.ID); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoked twice: %v", err)
	}
	if len(told) != 1 {
		t.Errorf("told of what is not there: %v", told)
	}
}

// What is on the disk gives nobody access.
func TestOnlyAHashIsKept(t *testing.T) {
	s := open(t)
	text, _ := create(t, s, User, time.Time{})
	data, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if secret := strings.Split(text, "_")[2]; strings.Contains(string(data), secret) {
		t.Error("the file holds the secret")
	}
	if st, err := os.Stat(s.path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

func TestExpiry(t *testing.T) {
	s := open(t)
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	text, made := create(t, s, ReadOnly, now.Add(time.Hour))
	now = now.Add(time.Hour - 1)
	if _, err := s.Find(text); err != nil {
		t.Errorf("before its end: %v", err)
	}
	now = now.Add(1)
	if _, err := s.Find(text); !errors.Is(err, ErrExpired) {
		t.Errorf("at its end: %v", err)
	}
	if _, err := s.ByID(made.ID); !errors.Is(err, ErrExpired) {
		t.Errorf("by its ID: %v", err)
	}
}

// One changed letter, wherever it is, is told as such; a whole token of another broker is unknown.
func TestMistyped(t *testing.T) {
	s := open(t)
	text, _ := create(t, s, Operator, time.Time{})
	for i := len(Prefix); i < len(text); i++ {
		changed := text[:i] + "a" + text[i+1:]
		if text[i] == 'a' {
			changed = text[:i] + "b" + text[i+1:]
		}
		if _, err := s.Find(changed); !errors.Is(err, ErrMistyped) {
			t.Fatalf("letter %d changed: %v", i, err)
		}
	}
	foreign, _ := create(t, open(t), Operator, time.Time{})
	for _, c := range []struct {
		name, text string
		err        error
	}{
		{"none", "", ErrNoToken},
		{"password", "hunter2", ErrNoToken},
		{"huge", strings.Repeat("c", 1<<20), ErrNoToken},
		{"prefix alone", Prefix, ErrMistyped},
		{"cut", text[:len(text)-1], ErrMistyped},
		{"longer", text + "a", ErrMistyped},
		{"another broker's", foreign, ErrUnknown},
		{"capitals and a line break", strings.ToUpper(text[:20]) + "\n" + text[20:] + "\n", nil},
	} {
		if _, err := s.Find(c.text); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}

func TestRefusedTokens(t *testing.T) {
	s := open(t)
	for name, token := range map[string]Token{
		"no name":   {User: "a", Role: User},
		"two lines": {Name: "a\nb", User: "a", Role: User},
		"long name": {Name: strings.Repeat("a", 101), User: "a", Role: User},
		"no user":   {Name: "a", Role: User},
		"bad user":  {Name: "a", User: "A/b", Role: User},
		"long user": {Name: "a", User: strings.Repeat("a", 64), Role: User},
		"no role":   {Name: "a", User: "a", Role: "root"},
		"past":      {Name: "a", User: "a", Role: User, Expires: time.Now().Add(-time.Second)},
	} {
		if _, _, err := s.Create(token); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.List()) != 0 {
		t.Error("something was made")
	}
}

func TestRoles(t *testing.T) {
	for _, c := range []struct {
		have, need Role
		covers     bool
	}{
		{ReadOnly, ReadOnly, true},
		{ReadOnly, User, false},
		{User, ReadOnly, true},
		{User, Operator, false},
		{Operator, User, true},
		{"auditor", ReadOnly, false}, // of a later version
		{"", "", false},
	} {
		if got := c.have.Covers(c.need); got != c.covers {
			t.Errorf("%q covers %q: %v", c.have, c.need, got)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"version":2}`, `{"version":1,"tokens":[{"id":"a","sha256":"00"}]}`,
		`{"version":1,"tokens":[{"sha256":"` + strings.Repeat("0", 64) + `"}]}`,
	} {
		path := filepath.Join(t.TempDir(), TokensFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkFind is what a request pays for its token to be looked up.
func BenchmarkFind(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), TokensFile))
	if err != nil {
		b.Fatal(err)
	}
	text, _, err := s.Create(Token{Name: "bench", User: "alice", Role: User})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Find(text); err != nil {
			b.Fatal(err)
		}
	}
}
