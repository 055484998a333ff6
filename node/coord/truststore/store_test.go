package truststore

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// grown is a roster with more members, each admitted by an entry of its own.
func grown(r Roster, more ...string) Roster {
	r.Members = slices.Clone(r.Members)
	for _, site := range more {
		r.Index++
		r.Members = append(r.Members, Entry{Site: site, Key: keyOf(byte(100 + len(r.Members)))})
	}
	return r
}

// inFile is what a roster's file holds.
func inFile(t *testing.T, path string) Roster {
	t.Helper()
	r, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Sites that join one after the other are in force at once and written together: when many joined, each site wrote and
// synced the whole roster for each of them, before the entry that admitted it was done.
func TestManyJoinsAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "roster")
		s := opened(t, path)
		if err := s.Update(example()); err != nil {
			t.Fatal(err)
		}
		r := example()
		for n := range 20 {
			r = grown(r, "new"+string(rune('a'+n)))
			if err := s.Update(r); err != nil {
				t.Fatal(err)
			}
			if s.Find(r.Members[len(r.Members)-1].Key).Site == "" {
				t.Error("a new member is not in force")
			}
			if r.Index++; s.Update(r) != nil || s.Roster().Index != r.Index { // it has registered
				t.Error("an entry that changed nothing here is not in force")
			}
		}
		if got := inFile(t, path); !reflect.DeepEqual(got, example()) {
			t.Errorf("written at each join: %+v", got)
		}
		<-time.After(saveWait)
		synctest.Wait()
		if got := inFile(t, path); !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, want %+v", got, r)
		}
	})
}

// What takes something from a member is in the file before its entry is done, with the joins before it.
func TestOnlyJoinsAreWrittenBehind(t *testing.T) {
	for name, change := range map[string]func(*Roster){
		"expelled":          func(r *Roster) { r.Members[1].Banned = true },
		"another key":       func(r *Roster) { r.Members[1].Key = keyOf(77) },
		"no elector":        func(r *Roster) { r.Members[0].Elector = false },
		"a member more too": func(r *Roster) { r.Members[1].Banned = true; *r = grown(*r, "e") },
		"another elector":   func(r *Roster) { *r = grown(*r, "e"); r.Members[len(r.Members)-1].Elector = true },
		"fewer":             func(r *Roster) { r.Members = r.Members[:2] },
	} {
		path := filepath.Join(t.TempDir(), "roster")
		s := opened(t, path)
		r := grown(example(), "d")
		if err := errors.Join(s.Update(example()), s.Update(r)); err != nil {
			t.Fatal(err)
		}
		r.Members = slices.Clone(r.Members)
		r.Index++
		change(&r)
		if err := s.Update(r); err != nil {
			t.Fatal(err)
		}
		if got := inFile(t, path); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: the file holds %+v, want %+v", name, got, r)
		}
		if err := s.Flush(); err != nil {
			t.Error(err)
		}
	}
}

// A broker that stops has written what waited; a write that fails later is told.
func TestFlushAndUnsaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "roster")
		s := opened(t, path)
		var told []error
		s.OnUnsaved(func(err error) { told = append(told, err) })
		r := grown(example(), "d")
		if err := errors.Join(s.Update(example()), s.Update(r), s.Flush()); err != nil {
			t.Fatal(err)
		}
		if got := inFile(t, path); !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, want %+v", got, r)
		}
		if err := errors.Join(os.RemoveAll(dir), s.Update(grown(r, "e"))); err != nil {
			t.Fatal(err)
		}
		<-time.After(saveWait)
		synctest.Wait()
		if len(told) != 1 || !strings.Contains(told[0].Error(), "keep the roster") {
			t.Errorf("told %v", told)
		}
		if err := s.Flush(); err == nil {
			t.Error("what could not be written counts as written")
		}
		if err := s.Reset(r); err == nil {
			t.Error("a reset that cannot be written is in force")
		}
	})
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
