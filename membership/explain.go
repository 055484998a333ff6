package membership

import (
	"strings"
	"sync"
	"time"
)

// Two of memberlist's lines mean that a site tells a wrong address. They say so only to
// who knows memberlist.
const (
	strayPing    = "Got ping for unexpected node "
	refutePrefix = "Refuting a " // suspect or dead message (from: SITE)
	// unheardOften within unheardIn: that is no pause, others do not hear this site.
	unheardOften = 3
	unheardIn    = time.Minute
)

// unheard counts how often others said that this site does not answer.
type unheard struct {
	now  func() time.Time
	told func() string // the address that others are told
	mu   sync.Mutex
	last [unheardOften]time.Time // the newest ones, in a ring
	next int
}

// often notes one more, and reports whether there were many lately.
func (u *unheard) often() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	u.last[u.next] = now
	u.next = (u.next + 1) % unheardOften
	oldest := u.last[u.next]
	return !oldest.IsZero() && now.Sub(oldest) <= unheardIn
}

// explain says what a line of memberlist's means, with the remedy; false if it has
// nothing to say about it.
func (c *logAdapter) explain(text string) bool {
	if rest, ok := strings.CutPrefix(text, strayPing); ok {
		site, _, _ := strings.Cut(rest, " ")
		if site = strings.Trim(site, "'"); !validSite(site) || c.quiet.Load() {
			return false
		}
		c.limit.warn(&c.log, "stray "+site).Str("site", site).
			Msg("gossip: what is meant for another site comes to this gossip port: that site tells a wrong address: correct its `advertise` or `gossip`, and restart it")
		return true
	}
	rest, ok := strings.CutPrefix(text, refutePrefix)
	if !ok || !strings.HasPrefix(rest, "suspect ") && !strings.HasPrefix(rest, "dead ") {
		return false
	}
	if c.unheard.often() && !c.quiet.Load() {
		c.limit.warn(&c.log, "unheard").Str("gossip", c.unheard.told()).
			Msg("gossip: others hear nobody at the address that this site tells: correct `advertise` or `gossip` here and restart, or open the port for TCP and UDP")
	}
	return true
}
