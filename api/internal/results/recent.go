package results

import (
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/files"
)

const (
	// maxRecent is how many manifests are kept that were read, and maxRecentBytes how many bytes these have together.
	maxRecent      = 4
	maxRecentBytes = 2 * files.MaxManifest
	// keepRecent is how long one is kept that nobody asks for.
	keepRecent = 30 * time.Second
)

// manifestKey names a manifest of a job: another job's of the same bytes is another one, which may be gone.
type manifestKey struct {
	job  command.JobID
	hash files.Hash
}

// recent are the manifests that were read last, whole and checked: who fetches a task's files asks for one after the
// other, and to read the manifest for each makes the square of their number. The zero value is ready.
type recent struct {
	mu    sync.Mutex
	list  []*kept // used last at the end
	bytes int64
}

type kept struct {
	key  manifestKey
	size int64
	by   map[string]files.Entry
	end  *time.Timer
}

// of returns a manifest's files by path, nil if it is not kept.
func (c *recent) of(key manifestKey) map[string]files.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.list {
		if k.key == key {
			c.list = append(slices.Delete(c.list, i, i+1), k)
			k.end.Reset(keepRecent)
			return k.by
		}
	}
	return nil
}

// keep keeps a manifest of size bytes. Nobody changes by from then on.
func (c *recent) keep(key manifestKey, size int64, by map[string]files.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.list, func(k *kept) bool { return k.key == key }) {
		return // another request has read it meanwhile
	}
	k := &kept{key: key, size: size, by: by}
	k.end = time.AfterFunc(keepRecent, func() { c.drop(k) })
	c.list, c.bytes = append(c.list, k), c.bytes+size
	for len(c.list) > maxRecent || c.bytes > maxRecentBytes && len(c.list) > 1 {
		c.list[0].end.Stop()
		c.bytes -= c.list[0].size
		c.list = slices.Delete(c.list, 0, 1)
	}
}

// drop forgets a manifest.
func (c *recent) drop(k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.list, k); i >= 0 {
		c.list = slices.Delete(c.list, i, i+1)
		c.bytes -= k.size
	}
}
