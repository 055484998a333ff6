package transfer

import (
	"crypto/sha256"
	"time"
)

const (
	// leastShrink: a chunk whose compression saves less than one part in so many is sent raw.
	leastShrink = 16
	// probeEvery is every which chunk is tried, once one was not worth it.
	probeEvery = 32
	// settled is how much was written, in bytes, when a connection's speed is known: less may stand in buffers.
	settled = 4 << 20
)

// shrinking decides which chunks of a connection are compressed: those that it makes shorter, unless sending what it
// saves would take less time than it takes itself.
type shrinking struct {
	hash [sha256.Size]byte // of the blob of the last chunk
	skip int               // chunks to be sent raw
	fast bool              // because of the connection, not of the blob

	wrote int64         // bytes lately
	took  time.Duration // by the Writes of these
}

// tries reports whether to compress the next chunk, which is one of a blob.
func (s *shrinking) tries(hash *[sha256.Size]byte) bool {
	if *hash != s.hash && !s.fast {
		s.skip = 0
	}
	s.hash = *hash
	if s.skip == 0 {
		return true
	}
	s.skip--
	return false
}

// judge takes what has come of it: shrunk bytes of n, which took cost. It reports whether to send these.
func (s *shrinking) judge(n, shrunk int, cost time.Duration) bool {
	saved := n - shrunk
	shrinks := saved >= n/leastShrink
	// The asker has so many connections, which share the link.
	s.fast = shrinks && s.wrote >= settled && int64(cost)*(s.wrote>>10)*parallel > int64(saved)*int64(s.took>>10)
	if s.fast || !shrinks {
		s.skip = probeEvery - 1
	}
	return shrinks
}

// sent counts a Write of n bytes.
func (s *shrinking) sent(n int, took time.Duration) {
	s.wrote += int64(n)
	s.took += took
	if s.wrote > 8*settled { // what was long ago counts less and less
		s.wrote, s.took = s.wrote/2, s.took/2
	}
}
