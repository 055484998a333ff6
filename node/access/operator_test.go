package access

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func openIn(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readText(t *testing.T, dir string) string {
	t.Helper()
	text, err := ReadText(filepath.Join(dir, OperatorFile))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The first start makes the operator's token; later ones leave it, wherever its text is by then.
func TestOperatorsToken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, OperatorFile)
	s := openIn(t, dir)
	text := readText(t, dir)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if token, err := s.Find(text); err != nil || token.Role != Operator {
		t.Errorf("%+v, %v", token, err)
	}
	if _, err := openIn(t, dir).Find(text); err != nil || readText(t, dir) != text {
		t.Errorf("after another start: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, dir).Find(text); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that was moved away: %v", err)
	}
}

// A crash between the two files leaves a text without a token: the next start makes another one.
func TestCrashBetweenBothFiles(t *testing.T) {
	dir := t.TempDir()
	openIn(t, dir)
	old := readText(t, dir)
	if err := os.Remove(filepath.Join(dir, TokensFile)); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir)
	text := readText(t, dir)
	if text == old {
		t.Error("the text is still the old one")
	}
	if _, err := s.Find(text); err != nil {
		t.Error(err)
	}
	if _, err := s.Find(old); !errors.Is(err, ErrUnknown) {
		t.Errorf("the old one: %v", err)
	}
}

// A revoked token stays so.
func TestRevokedOperator(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	if err := s.Revoke(s.List()[0].ID); err != nil {
		t.Fatal(err)
	}
	if left := openIn(t, dir).List(); len(left) != 0 {
		t.Errorf("made again: %v", left)
	}
}

func TestWrongText(t *testing.T) {
	path := filepath.Join(t.TempDir(), OperatorFile)
	if _, err := ReadText(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadText(path); !errors.Is(err, ErrNoToken) {
		t.Errorf("no token: %v", err)
	}
}
