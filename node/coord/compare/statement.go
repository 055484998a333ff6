package compare

import (
	"encoding/binary"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Identity signs what this member says, and knows by what keys others sign: a relay.Identity.
type Identity interface {
	Sign(purpose string, parts ...[]byte) []byte
	Roster() relay.Roster
}

var _ Identity = (*relay.Identity)(nil)

// signedStatement is the purpose of a statement's signature.
const signedStatement = "cloudshare checkpoint 1"

// Group is whose entries are meant: entry numbers of two groups say nothing of each other.
type Group struct{ Federation, Lineage [16]byte }

// Statement is what a site says of its history and its state right after one entry.
type Statement struct {
	Site string
	coord.Checkpoint
	Format    string // of Hash
	Signature []byte // empty where members have no keys
}

// parts are what is signed. A state that was not hashed is an empty part.
func (s *Statement) parts(g Group) [][]byte {
	var state []byte
	if s.Hashed {
		state = s.Hash[:]
	}
	return [][]byte{
		g.Federation[:], g.Lineage[:], []byte(s.Site), binary.BigEndian.AppendUint64(nil, s.Entry), s.Chain[:], state,
		[]byte(s.Format),
	}
}

// Sign has a site's key sign the statement in a group.
func (s *Statement) Sign(g Group, by func(purpose string, parts ...[]byte) []byte) {
	s.Signature = by(signedStatement, s.parts(g)...)
}

// SignedBy reports whether the holder of a key has made the statement in a group.
func (s *Statement) SignedBy(key identity.Public, g Group) bool {
	return key.Verify(s.Signature, signedStatement, s.parts(g)...)
}

// Contradicts reports whether two statements cannot both be true of one history.
func (s *Statement) Contradicts(o *Statement) bool {
	a, b := s.Checkpoint, o.Checkpoint
	a.Hashed = a.Hashed && s.Format == o.Format
	return a.Contradicts(b)
}

// statements returns what this member says now. It says nothing of an entry that may have been applied before it
// started: a fault that a restart has healed would else look like a lie.
func (c *Checker) statements() []Statement {
	points := c.points()
	c.mu.Lock()
	defer c.mu.Unlock()
	own := make(map[uint64]Statement, len(points))
	out := make([]Statement, 0, len(points))
	for _, p := range points {
		s, signed := c.own[p.Entry]
		if !signed || s.Checkpoint != p {
			s = Statement{Site: c.cfg.Site, Checkpoint: p, Format: c.cfg.Machine.HashFormat()}
			if c.cfg.Identity != nil {
				s.Sign(c.cfg.Group, c.cfg.Identity.Sign)
			}
		}
		own[p.Entry] = s
		out = append(out, s)
	}
	c.own = own
	c.keep(out)
	return out
}

// keep tells whoever keeps what was signed.
func (c *Checker) keep(list []Statement) {
	if c.cfg.Keep != nil && c.cfg.Identity != nil {
		c.cfg.Keep(c.cfg.Group, list)
	}
}

// points returns the checkpoints that count: those behind the floor. There is none before that is known.
func (c *Checker) points() []coord.Checkpoint {
	if !c.begun.Load() {
		return nil
	}
	all := c.cfg.Machine.Checkpoints()
	for len(all) > 0 && all[0].Entry <= c.floor.Load() {
		all = all[1:]
	}
	return all
}

// proven reports whether a statement is its site's: by the roster's key, where members have keys.
func (c *Checker) proven(s *Statement) bool {
	if c.cfg.Identity == nil {
		return true
	}
	key, known := c.cfg.Identity.Roster().Key(s.Site)
	return known && s.SignedBy(key, c.cfg.Group)
}
