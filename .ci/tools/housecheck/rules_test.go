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
	}
	want := []string{
		"good/a_test.go:2:24: time." + "Sleep", "good/a_test.go:2:39: a skipped test",
		"long/a.go: 602 lines", "nodoc: no package comment", "notes.md:1: path of one machine",
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
