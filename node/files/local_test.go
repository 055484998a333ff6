package files

import (
	"path"
	"path/filepath"
)

// isLocalAndClean asks the standard library.
func isLocalAndClean(p string) bool { return filepath.IsLocal(p) && path.Clean(p) == p && p != "." }
