package raftlog

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// complaint is what one goroutine says again and again: at once when it is of
// another kind than before, else at most once in relay.LogEvery.
type complaint struct {
	log        zerolog.Logger
	kind       string    // of the last one
	quietUntil time.Time // nothing more of that kind is said before
}

// warn logs why, unless the like was said a moment ago.
func (c *complaint) warn(kind, why, msg string) {
	now := time.Now()
	if now.Before(c.quietUntil) && c.kind == kind {
		return
	}
	c.kind, c.quietUntil = kind, now.Add(relay.LogEvery)
	c.log.Warn().Str("reason", why).Msg(msg)
}
