package attacks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTableOfAuthority: each command and each kind of connection has its row in DESIGN.md, and each test that is named
// there exists.
func TestTableOfAuthority(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := read("DESIGN.md")
	_, table, _ := strings.Cut(text, "## The table of authority")
	table, _, _ = strings.Cut(table, "\n## ")
	said := map[string]bool{}
	for line := range strings.Lines(table) {
		first, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, name := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(first, -1) {
			said[name] = isRow
		}
	}
	kind := regexp.MustCompile(`(?m)^\tKind([A-Za-z]+) +Kind += +\d`)
	for _, path := range []string{"../../fsm/command/kind.go", "../../node/coord/relay/mux.go"} {
		kinds := kind.FindAllStringSubmatch(read(path), -1)
		if len(kinds) < 10 {
			t.Fatalf("%s has only %d kinds", path, len(kinds))
		}
		for _, k := range kinds {
			if !said[k[1]] {
				t.Errorf("kind %s of %s has no row", k[1], path)
			}
		}
	}
	exists := testsBelow(t, "../..")
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]+|Fuzz[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1) {
		if !exists[name[1]] {
			t.Errorf("there is no %s", name[1])
		}
	}
}

// testsBelow returns the names of all tests below a folder.
func testsBelow(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	decl := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range decl.FindAllSubmatch(b, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
