//go:build mutate

package compare

import (
	"os"
	"slices"
	"strings"
)

// switchedOff reports whether this process asks nobody, to show that a check of
// test/chaos notices.
func switchedOff() bool {
	return slices.Contains(strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ","), "no-replica-compare")
}
