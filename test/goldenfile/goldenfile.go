// Package goldenfile compares what a test made with a file beside the test, so
// that a change of it is a diff to read. It is for tests whose expectation is
// one text; scripts of commands and answers use datadriven, whose flag has the
// same name, so a package uses one of the two.
package goldenfile

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files: read every change")

// Match compares got with testdata/name and shows the first line that differs;
// -rewrite writes the file instead.
func Match(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: -rewrite writes it", err)
	}
	if line, g, w := firstDifference(got, string(want)); line > 0 {
		t.Fatalf("%s line %d (-rewrite rewrites it, then read the change):\n got %s\nwant %s", path, line, g, w)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// firstDifference returns the number, from 1, and both forms of the first line
// that differs; 0 if none does.
func firstDifference(got, want string) (line int, g, w string) {
	if got == want {
		return 0, "", ""
	}
	gs, ws := append(strings.Split(got, "\n"), "(end)"), append(strings.Split(want, "\n"), "(end)")
	for i := range min(len(gs), len(ws)) {
		if gs[i] != ws[i] {
			return i + 1, gs[i], ws[i]
		}
	}
	return min(len(gs), len(ws)), gs[len(gs)-1], ws[len(ws)-1]
}
