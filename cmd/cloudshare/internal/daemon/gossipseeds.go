package daemon

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/rs/zerolog"
)

// maxSeeds bounds the addresses that are kept.
const maxSeeds = 64

// gossipSeeds keeps some gossip addresses of the federation besides the state: a
// broker that restarts has no state before it has found a quorum, and may need
// gossip to find one. They are hints: a file that is lost or old costs only time.
// One goroutine calls it.
type gossipSeeds struct {
	path  string
	log   zerolog.Logger
	saved []string // what the file holds; nil: not read yet
}

// addresses returns the addresses by the state, or those of the last time as long as it
// has none.
func (s *gossipSeeds) addresses(now []string) []string {
	if s.saved == nil {
		s.saved = []string{}
		if text, err := os.ReadFile(s.path); err == nil {
			_ = json.Unmarshal(text, &s.saved) // a damaged file is as none
		}
	}
	if len(now) == 0 {
		return slices.Clone(s.saved[:min(len(s.saved), maxSeeds)])
	}
	some := now[:min(len(now), maxSeeds)]
	if slices.Equal(some, s.saved) {
		return now
	}
	s.saved = slices.Clone(some)
	text, err := json.Marshal(some)
	if err == nil {
		err = os.WriteFile(s.path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.path+".new", s.path)
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("gossip addresses are not kept: after a restart this broker finds others only where the group has them")
	}
	return now
}
