//go:build mutate

package relay

import (
	"os"
	"slices"
	"strings"
)

// mutations are the safeguards that this process works without.
var mutations = strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ",")

// mutated reports whether a safeguard is switched off.
func mutated(safeguard string) bool { return slices.Contains(mutations, safeguard) }
