package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/payloadkey"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/wholefile"
)

// secretOf starts on a folder, and returns what its site's jobs are sealed with.
func secretOf(t *testing.T, dir string) ([32]byte, error) {
	t.Helper()
	j, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err = keepSecret(dir, j, zerolog.Nop()); err != nil {
		return [32]byte{}, err
	}
	secrets, err := j.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	return secrets[0], nil
}

// The secret stays what it is while either the journal or its copy in a file is there.
func TestSecretIsKeptTwice(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, config.SecretFile)
	first, err := secretOf(t, dir)
	if err != nil || first == [32]byte{} {
		t.Fatalf("%x, %v", first, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("its file: %v, %v", st.Mode(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := secretOf(t, dir); err != nil || got != first {
		t.Errorf("without the file: %x, %v", got, err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, text) {
		t.Errorf("the file is written again as %q, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(empty, config.SecretFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := secretOf(t, empty); err != nil || got != first {
		t.Errorf("on an empty folder with the file: %x, %v", got, err)
	}
}

// A file that is damaged, another's or readable by others is told, and nothing is sealed meanwhile.
func TestWrongSecretFile(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if _, err := secretOf(t, d); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, config.SecretFile)
	text, err := os.ReadFile(filepath.Join(other, config.SecretFile))
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{string(text): "another secret", "csj_short": "restore it", "": "restore it"} {
		if err := os.WriteFile(path, []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := secretOf(t, dir)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("of %q: %v", what, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := secretOf(t, dir); !errors.Is(err, wholefile.ErrExposed) {
		t.Errorf("readable by others: %v", err)
	}
}

// secretsOf starts on a folder, and returns all secrets of the journal, which the file has, too.
func secretsOf(t *testing.T, dir string) [][32]byte {
	t.Helper()
	if _, err := secretOf(t, dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, config.SecretFile)
	list, err := payloadkey.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	inJournal(t, dir, func(j *record.Journal) {
		if in, err := j.Secrets(); err != nil || !slices.Equal(in, list) {
			t.Errorf("%d in the journal, %d in the file, %v", len(in), len(list), err)
		}
	})
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("its file: %v, %v", st.Mode(), err)
	}
	return list
}

func inJournal(t *testing.T, dir string, do func(j *record.Journal)) {
	t.Helper()
	j, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	do(j)
}

// The next secret is taken at a start, and those of before stay behind it, four in all; what is not needed is
// forgotten.
func TestSecretIsReplaced(t *testing.T) {
	dir := t.TempDir()
	list, next := secretsOf(t, dir), filepath.Join(dir, config.NextSecret)
	for n := 2; n <= payloadkey.MaxKept+1; n++ {
		if err := payloadkey.Next(next); err != nil {
			t.Fatal(err)
		}
		now := secretsOf(t, dir)
		_, err := os.Stat(next)
		switch full := n > payloadkey.MaxKept; {
		case full && (!slices.Equal(now, list) || err != nil):
			t.Errorf("one too many: %d secrets, the next one: %v", len(now), err)
		case !full && (len(now) != n || !slices.Equal(now[1:], list) || !errors.Is(err, os.ErrNotExist)):
			t.Errorf("%d secrets of %d, the next one: %v", len(now), n, err)
		}
		list = now
	}
	inJournal(t, dir, func(j *record.Journal) {
		if err := dropSecrets(dir, j, list, []bool{true, false, true, false}); err != nil {
			t.Error(err)
		}
		if err := dropSecrets(dir, j, list, []bool{false, false, true, false}); err != nil { // never the one of now
			t.Error(err)
		}
	})
	now := secretsOf(t, dir) // which takes the one that waited
	if len(now) != 3 || now[1] != list[0] || now[2] != list[2] {
		t.Errorf("%d secrets", len(now))
	}
}

// Wherever a crash comes between the journal, its copy and the next one, the next start has all secrets. A copy of
// before is written again, and a journal of before takes what the file has.
func TestSecretsAreMergedAfterACrash(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, config.SecretFile), filepath.Join(dir, config.NextSecret)
	one := secretsOf(t, dir)
	if err := payloadkey.Next(next); err != nil {
		t.Fatal(err)
	}
	left, err := payloadkey.Read(next)
	if err != nil {
		t.Fatal(err)
	}
	two := secretsOf(t, dir)
	for name, c := range map[string]struct {
		journal, file [][32]byte
		next          bool
	}{
		"the copy was not written":     {two, one, true},
		"the next one was not removed": {two, two, true},
		"the journal is of before":     {one, two, false},
		"the copy is of before":        {two, one, false},
		"nothing was done":             {one, one, true},
	} {
		inJournal(t, dir, func(j *record.Journal) {
			if err := errors.Join(j.SetSecrets(c.journal), payloadkey.Write(path, c.file)); err != nil {
				t.Fatal(err)
			}
		})
		if c.next {
			if err := payloadkey.Write(next, left); err != nil {
				t.Fatal(err)
			}
		}
		if now := secretsOf(t, dir); !slices.Equal(now, two) {
			t.Errorf("%s: %d secrets", name, len(now))
		}
	}
}
