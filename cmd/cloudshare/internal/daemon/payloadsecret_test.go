package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
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
	if err = keepSecret(dir, j); err != nil {
		return [32]byte{}, err
	}
	secret, err := j.Secret()
	if err != nil {
		t.Fatal(err)
	}
	return secret, nil
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
