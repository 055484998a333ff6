package raftlog

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// complaint is what one goroutine says again and again: at once when it changes,
// else at most once in relay.LogEvery.
type complaint struct {
	log        zerolog.Logger
	last       string
	quietUntil time.Time // nothing is said before, whatever it is, if last is empty
}

// warn logs why, unless that was said a moment ago.
func (c *complaint) warn(why, msg string) {
	now := time.Now()
	if now.Before(c.quietUntil) && (c.last == "" || c.last == why) {
		return
	}
	c.last, c.quietUntil = why, now.Add(relay.LogEvery)
	c.log.Warn().Str("reason", why).Msg(msg)
}
