package truststore

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
)

func keyOf(n byte) identity.Public { return identity.FromSeed([32]byte{n}).Public() }

func example() Roster {
	return Roster{Federation: [16]byte{7}, Index: 40, Members: []Entry{
		{Site: "a", Key: keyOf(1), Elector: true}, {Site: "b", Key: keyOf(2)}, {Site: "c", Key: keyOf(3), Banned: true},
	}}
}

func opened(t *testing.T, path string, denied ...string) *Store {
	t.Helper()
	s, err := Open(path, denied)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The newest roster is in force at once, and at the next start.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster")
	s := opened(t, path)
	if s.Find(keyOf(1)) != (relay.Standing{}) {
		t.Error("an empty store knows a key")
	}
	changes := 0
	s.OnChange(func() { changes++ })
	if err := s.Update(example()); err != nil {
		t.Fatal(err)
	}
	older := example()
	older.Index, older.Members = 39, older.Members[:1]
	if err := errors.Join(s.Update(older), s.Update(example())); err != nil {
		t.Fatal(err)
	}
	if changes != 1 {
		t.Errorf("%d changes", changes)
	}
	for _, s := range []*Store{s, opened(t, path)} {
		if !reflect.DeepEqual(s.Roster(), example()) {
			t.Errorf("%+v", s.Roster())
		}
		if a := s.Find(keyOf(1)); a != (relay.Standing{Site: "a", Elector: true}) {
			t.Errorf("a is %+v", a)
		}
		if !s.Find(keyOf(3)).Banned || s.Find(keyOf(9)) != (relay.Standing{}) {
			t.Error("c is not banned, or a stranger is known")
		}
		if key, ok := s.Key("b"); key != keyOf(2) || !ok {
			t.Errorf("b has %s, %v", key, ok)
		}
		if _, ok := s.Key("z"); ok {
			t.Error("z has a key")
		}
	}
	foreign := example()
	foreign.Federation, foreign.Index = [16]byte{8}, 99
	if err := s.Update(foreign); !errors.Is(err, ErrForeign) {
		t.Errorf("another federation's: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Whoever is denied here is expelled here, whatever the federation says.
func TestDenied(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "roster"), "b")
	if err := s.Update(example()); err != nil {
		t.Fatal(err)
	}
	if !s.Find(keyOf(2)).Banned || s.Find(keyOf(1)).Banned {
		t.Errorf("a %+v, b %+v", s.Find(keyOf(1)), s.Find(keyOf(2)))
	}
}

// A roster that cannot be written is in force all the same, and somebody hears of it.
func TestUnwritableRoster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone", "roster")
	s := opened(t, path)
	if err := s.Update(example()); err == nil || !strings.Contains(err.Error(), "keep the roster") {
		t.Errorf("%v", err)
	}
	if s.Find(keyOf(1)).Site != "a" {
		t.Error("it is not in force")
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster")
	good, err := Encode(example())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "{}", strings.Replace(string(good), "csk_", "csk_a", 1), strings.Replace(string(good), `"b"`, `"a"`, 1),
		strings.Replace(string(good), `"version": 1`, `"version": 2`, 1), string(good[:len(good)/2]),
		strings.Replace(string(good), keyOf(2).String(), keyOf(1).String(), 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, nil); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	good, _ := Encode(example())
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		again, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(again); err != nil || back.Index != r.Index || len(back.Members) != len(r.Members) {
			t.Fatalf("%v: %s", err, again)
		}
	})
}

// BenchmarkUpdate: a roster of 1000 members, its file included.
func BenchmarkUpdate(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "roster"), nil)
	if err != nil {
		b.Fatal(err)
	}
	r := Roster{Federation: [16]byte{7}}
	for n := range 1000 {
		site := "s" + strings.Repeat("a", n/26) + string('a'+rune(n%26))
		key := identity.FromSeed([32]byte{byte(n), byte(n >> 8)}).Public()
		r.Members = append(r.Members, Entry{Site: site, Key: key})
	}
	for b.Loop() {
		r.Index++
		if err := s.Update(r); err != nil {
			b.Fatal(err)
		}
	}
}
