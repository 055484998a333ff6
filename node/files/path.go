package files

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckPath returns nil if path may be the place of a file below a work folder: relative, of names parted by single
// slashes, none of them "." or "..", at most MaxName bytes each and MaxPath in all. Names are valid UTF-8 without
// control characters: so they stand in JSON, URLs and terminals as they are. Otherwise it returns ErrPath with the
// reason.
func CheckPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: it is empty", ErrPath)
	case len(path) > MaxPath:
		return fmt.Errorf("%w: %.80q… has %d bytes, and %d are the most", ErrPath, path, len(path), MaxPath)
	case path[0] == '/':
		return fmt.Errorf("%w: %.80q is not relative to the work folder", ErrPath, path)
	case !utf8.ValidString(path):
		return fmt.Errorf("%w: %.80q is not UTF-8: rename the file", ErrPath, path)
	case strings.ContainsFunc(path, unicode.IsControl):
		return fmt.Errorf("%w: %.80q has a control character: rename the file", ErrPath, path)
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "" || name == "." || name == "..":
			return fmt.Errorf("%w: %.80q is not clean: it has the name %q", ErrPath, path, name)
		case len(name) > MaxName:
			return fmt.Errorf("%w: a name in %.80q… has %d bytes, and %d are the most", ErrPath, path, len(name), MaxName)
		}
	}
	return nil
}

// CheckPaths returns nil if files may stand at all paths together, in any order; otherwise ErrPath or ErrOverlap.
func CheckPaths(paths []string) error {
	sorted := slices.SortedFunc(slices.Values(paths), ComparePaths)
	for i, path := range sorted {
		if err := CheckPath(path); err != nil {
			return err
		}
		if i > 0 {
			if err := checkApart(sorted[i-1], path); err != nil {
				return err
			}
		}
	}
	return nil
}

// ComparePaths orders paths name by name, each by its bytes. So what is below a folder follows it at once, and nothing
// stands between: this is the order of a manifest.
func ComparePaths(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return cmp.Compare(rank(a, n), rank(b, n))
}

// rank returns the place of a path's n-th byte in the order: its end, a slash, any other byte.
func rank(path string, n int) int {
	switch {
	case n == len(path):
		return 0
	case path[n] == '/':
		return 1
	}
	return int(path[n]) + 2
}

// checkApart returns ErrOverlap if a path and the one that follows it in the order of ComparePaths are no two files.
func checkApart(path, next string) error {
	rest, below := strings.CutPrefix(next, path)
	switch {
	case !below || rest != "" && rest[0] != '/':
		return nil
	case rest == "":
		return fmt.Errorf("%w: %.80q is there twice", ErrOverlap, path)
	}
	return fmt.Errorf("%w: %.80q is a file, and the folder of %.80q", ErrOverlap, path, next)
}
