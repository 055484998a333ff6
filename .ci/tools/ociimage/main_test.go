package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildRepeats: the same files are the same image.
func TestBuildRepeats(t *testing.T) {
	dir := t.TempDir()
	program, ca := filepath.Join(dir, "program"), filepath.Join(dir, "ca")
	for path, text := range map[string]string{program: "binary", ca: "certificates"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, errA := build(program, ca, "cloudshare:test")
	b, errB := build(program, ca, "cloudshare:test")
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Fatalf("two builds differ: %v, %v", errA, errB)
	}
	for _, want := range []string{"manifest.json", `"cloudshare:test"`, `"65532:65532"`, "certificates", "binary"} {
		if !bytes.Contains(a, []byte(want)) {
			t.Errorf("no %q in it", want)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][4]string{
		"are needed": {}, "no such file": {filepath.Join(dir, "none"), "", "a:b", "c"}, "read ": {text, "", "a:b", "c"},
	} {
		if err := run(args[0], args[1], args[2], args[3]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
