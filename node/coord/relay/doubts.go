package relay

import (
	"sync"
	"time"
)

// doubtFor is how long a site's bundles are verified before they are ordered, after one that it had not signed.
const doubtFor = time.Minute

// doubts are the sites that have sent this member bundles which they had not signed. All others' are ordered first and
// verified while the entry is written: every replica judges them all the same, so a wrong one costs its place in an
// entry, and a right one does not wait. Sites are those of the roster. Safe for concurrent use.
type doubts struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// has reports whether a site is doubted.
func (d *doubts) has(site string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, doubted := d.until[site]
	if doubted && now.After(until) {
		delete(d.until, site)
		return false
	}
	return doubted
}

// add has a site doubted for some time.
func (d *doubts) add(site string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil {
		d.until = map[string]time.Time{}
	}
	d.until[site] = now.Add(doubtFor)
}
