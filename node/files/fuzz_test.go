package files

import (
	"bytes"
	"testing"
)

// FuzzManifest: whatever the bytes are, reading ends without a panic, and what was read is written as the very bytes.
func FuzzManifest(f *testing.F) {
	run := entry("run.sh", "#!/bin/sh\n")
	run.Executable = true
	for _, entries := range [][]Entry{nil, {entry("a", "")}, {entry("a/b", "x"), large("a/c", 1<<20), run}} {
		b, err := EncodeManifest(entries)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := readAll(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := EncodeManifest(entries)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q was read, and written %q, %v", b, again, err)
		}
	})
}

// FuzzCheckPath: what passes leads nowhere else, and is what it says.
func FuzzCheckPath(f *testing.F) {
	for _, path := range []string{"a/b", "../a", "/a", "a//b", "a/./b", "\x00"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if CheckPath(path) == nil && !isLocalAndClean(path) {
			t.Errorf("%q passes", path)
		}
	})
}
