//go:build mutate

package transport

import (
	"os"
	"slices"
	"strings"
)

// mutations are the safeguards that this process works without.
var mutations = strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ",")

var (
	// noTermBound: this process believes any term of a peer.
	noTermBound = slices.Contains(mutations, "no-term-bound")
	// noRequestIdentity: it believes the name in a raft request, whoever sends it.
	noRequestIdentity = slices.Contains(mutations, "no-request-identity")
	// noLeaderSilence: who first said that it leads a term is believed for good.
	noLeaderSilence = slices.Contains(mutations, "no-leader-silence")
)
