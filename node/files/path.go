package files

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
)

// CheckPath returns nil if path may be the place of a file below a work folder, as executors take it: relative, of
// names parted by single slashes, none of them "." or "..", at most MaxName bytes each and MaxPath in all. Names are
// valid UTF-8 without control characters: so they stand in JSON, URLs and terminals as they are. Otherwise it returns
// ErrPath with the reason.
func CheckPath(path string) error {
	if err := executor.CheckPath(path, false); err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
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

// ComparePaths orders paths as a manifest does, and as executors give out what they have collected.
func ComparePaths(a, b string) int { return executor.ComparePaths(a, b) }

// checkApart returns ErrOverlap if a path and the one that follows it in the order of ComparePaths are no two files.
func checkApart(path, next string) error {
	if err := executor.CheckApart(path, next); err != nil {
		return fmt.Errorf("%w: %w", ErrOverlap, err)
	}
	return nil
}
