package daemon

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/roster"
)

// maxSeeds bounds the addresses that are kept.
const maxSeeds = 64

// gossipSeeds keeps some gossip addresses of the federation besides the state, and the key of gossip: a
// broker that restarts has no state before it has found a quorum, and may need
// gossip to find one. They are hints: a file that is lost or old costs only time.
// One goroutine at a time calls it.
type gossipSeeds struct {
	path    string
	lineage [16]byte // the key of another one is none
	log     zerolog.Logger
	saved   *gossipFile // what the file holds; nil: not read yet
}

// gossipFile is the file's form.
type gossipFile struct {
	Addresses  []string `json:"addresses"`
	Lineage    [16]byte `json:"lineage"`
	Generation uint64   `json:"generation,omitempty"` // 0: no key
	Key        [32]byte `json:"key"`
}

func (s *gossipSeeds) load() *gossipFile {
	if s.saved != nil {
		return s.saved
	}
	s.saved = &gossipFile{}
	if text, err := os.ReadFile(s.path); err == nil {
		if json.Unmarshal(text, s.saved) != nil { // a damaged file is as none
			s.saved = &gossipFile{}
		}
	}
	return s.saved
}

// key returns the later one of the key by the state and that of the last time.
func (s *gossipSeeds) key(now roster.GossipKey) roster.GossipKey {
	if f := s.load(); f.Lineage == s.lineage && f.Generation > now.Generation {
		return roster.GossipKey{Generation: f.Generation, Key: f.Key}
	}
	return now
}

// addresses returns the addresses by the state, or those of the last time as long as it
// has none. It keeps them, and the key.
func (s *gossipSeeds) addresses(now []string, key roster.GossipKey) []string {
	next := *s.load()
	if len(now) > 0 {
		next.Addresses = slices.Clone(now[:min(len(now), maxSeeds)])
	}
	if key = s.key(key); key.Generation > 0 {
		next.Lineage, next.Generation, next.Key = s.lineage, key.Generation, key.Key
	}
	if !slices.Equal(next.Addresses, s.saved.Addresses) || next.Key != s.saved.Key {
		s.saved = &next
		s.save()
	}
	if len(now) == 0 {
		return slices.Clone(next.Addresses[:min(len(next.Addresses), maxSeeds)])
	}
	return now
}

func (s *gossipSeeds) save() {
	text, err := json.Marshal(s.saved)
	if err == nil {
		err = os.WriteFile(s.path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.path+".new", s.path)
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("gossip's addresses and key are not kept: after a restart this broker finds others only where the group has them")
	}
}
