package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWipingGoesByBatches: what a task has left goes however much it is, but for what is kept.
func TestWipingGoesByBatches(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "kept", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	const files = 5 * wipeBatch
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%0200d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "gone"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := wipeFolder(dir, []string{"a/kept"}); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		left = append(left, rel)
		return err
	})
	if want := []string{".", "a", "a/kept", "a/kept/inside"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v; want %v", left, err, want)
	}
}
