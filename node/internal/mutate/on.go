//go:build mutate

package mutate

import (
	"os"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
)

// mutations are the safeguards that this process works without. `cloudshare dev` gives brokers no variables of its
// prefix that it does not know, so there they have another name.
var mutations = strings.Split(os.Getenv("CLOUDSHARE_MUTATE")+","+os.Getenv("HOSTILE_WITHOUT"), ",")

func init() { fsm.Mutate(mutations) }

// On reports whether a safeguard is switched off.
func On(safeguard string) bool { return slices.Contains(mutations, safeguard) }

// All returns what is switched off.
func All() []string { return mutations }
