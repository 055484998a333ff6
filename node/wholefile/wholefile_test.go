package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for _, text := range []string{"first", "second", ""} {
		if err := Replace(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, cause := os.Stat(path)
		if err != nil || cause != nil || string(got) != text || info.Mode() != 0o600 {
			t.Errorf("%q: it holds %q: %v, %v", text, got, err, cause)
		}
	}
	if err := Replace(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

// What cannot be put in place leaves nothing behind.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("text"), 0o600); err == nil {
		t.Error("it took the place of a folder")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := Replace(filepath.Join(dir, "none", "key"), nil, 0o600); err == nil {
		t.Error("it was written into no folder")
	}
}
