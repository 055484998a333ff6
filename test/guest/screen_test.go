//go:build guest

package guest

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// stallBound is how long a guest's console may be silent: its init writes a beat every ten seconds.
const stallBound = 4 * time.Minute

// beat is what the guest's init writes while the guest lives; it belongs to no test.
const beat = "GUEST LIVES\n"

// screen keeps what a guest shows, and when it showed something last.
type screen struct {
	mu   sync.Mutex
	said bytes.Buffer
	last time.Time
}

func (c *screen) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	return c.said.Write(p)
}

// text is what the guest showed without its beats.
func (c *screen) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := bytes.ReplaceAll(c.said.Bytes(), []byte("\r"), nil)
	return string(bytes.ReplaceAll(said, []byte(beat), nil))
}

// silence is how long the guest has shown nothing.
func (c *screen) silence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.last)
}

// watch ends a guest, by stop, that is silent for too long; it returns when ctx is over.
func (c *screen) watch(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for c.silence() < stallBound {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	stop(errStalled)
}
