package web

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestForeignFiles: the files of other packages are those that were fetched.
func TestForeignFiles(t *testing.T) {
	list, err := os.ReadFile("assets/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s was changed: `make web-assets` says how", name)
		}
	}
}
