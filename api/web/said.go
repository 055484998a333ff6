package web

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// saidCache holds the ends of some attempts' outputs: a page that is redrawn
// every second does not ask another site for them each time. The zero value is
// empty. It is safe for concurrent use.
type saidCache struct {
	mu    sync.Mutex
	texts map[saidKey]saidText
	order []saidKey // invariant: the keys of texts, oldest first, at most maxSaid
}

type saidKey struct {
	job           command.JobID
	task, attempt uint32
}

type saidText struct {
	lines  []string
	unsaid string
	at     time.Time // when it was asked for
}

const (
	// maxSaid bounds the outputs that are held, saidLines lines each.
	maxSaid = 512
	// askAgain is how long it is believed that an output cannot be had.
	askAgain = 10 * time.Second
)

func (c *saidCache) get(key saidKey, now time.Time) (saidText, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.texts[key]
	return t, ok && (t.unsaid == "" || now.Sub(t.at) < askAgain)
}

func (c *saidCache) put(key saidKey, t saidText) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts == nil {
		c.texts = map[saidKey]saidText{}
	}
	if _, held := c.texts[key]; !held {
		if len(c.order) == maxSaid {
			delete(c.texts, c.order[0])
			c.order = append(c.order[:0], c.order[1:]...)
		}
		c.order = append(c.order, key)
	}
	c.texts[key] = t
}
