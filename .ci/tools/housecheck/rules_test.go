package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRules writes one file per fault and expects each to be found once.
func TestRules(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	files := []string{
		write("good/a.go", "// Package good is fine.\npackage good\n"),
		write("nodoc/a.go", "package nodoc\n"),
		write("long/a.go", "// Package long is long.\npackage long\n"+strings.Repeat("\n", maxLines)),
		write("good/a_test.go", "package good\nfunc f(t *testing.T) { time."+"Sleep(1); t."+"Skip(); g(func(t *rapid.T) { t."+"Skip() }) }\n"),
		write("notes.md", "see "+machinePaths[0]+"x\n"),
		write("wide/a.go", "// Package wide is wide.\npackage wide\n\nvar a = \""+strings.Repeat("x", maxColumns)+"\"\n"+
			"var b = "+strings.Repeat("1+", maxColumns)+"1 // too wide\n"+
			"var c = `\n"+strings.Repeat("x", maxColumns+1)+"`\n// See https://"+strings.Repeat("x", maxColumns)+"\n"),
		write("words/a.go", "// Package words has them.\npackage words\n\nvar theReig"+"nOf, goesAne"+"w, startsANew, foreign, newer = 1, 2, 3, 4, 5\n"),
		write("words/b.md", "It goes on for eve"+"r, not forever.\n"),
		write("wide/b.md", strings.Repeat("word ", maxColumns/4)+"\n| "+strings.Repeat("word ", maxColumns/4)+
			"|\n- ["+strings.Repeat("x", maxColumns)+"](y) z\n```\n"+strings.Repeat("word ", maxColumns/4)+"\n```\n"),
		write("wide/testdata/b.md", strings.Repeat("word ", maxColumns/4)+"\n"),
		write("docs/a.go", "// Package docs will be done later.\npackage docs\n\n// g does it.\nfunc f() {}\n\n"+
			"// even says whether it is.\nfunc even(int) bool { return true }\n\n// REQUIRES: mu held.\nfunc h() {}\n\n"+
			"// odd reports whether it is.\nfunc odd(int) bool { return true }\n"),
		write("fsm/a.go", "// Package fsm is checked ane"+"w, like all others.\npackage fsm\n"),
	}
	want := []string{
		"docs/a.go:1:1: the package comment says \"later\"", "docs/a.go:4:1: the comment of f", "docs/a.go:7:1: even is a predicate",
		"fsm/a.go:1: \"ane" + "w\"",
		"good/a_test.go:2:24: time." + "Sleep", "good/a_test.go:2:39: a skipped test",
		"long/a.go: 602 lines", "nodoc: no package comment", "notes.md:1: path of one machine",
		"wide/a.go:5: 261 columns", "wide/b.md:1: 150 columns", "words/a.go:4: \"Ane" + "w", "words/a.go:4: \"Reig" + "n\"", "words/b.md:1: \"for eve" + "r\"",
	}
	got := check(root, files)
	if len(got) != len(want) {
		t.Fatalf("faults:\n%s", strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("fault %d is %q, want %q…", i, got[i], want[i])
		}
	}
}
