package daemon

import (
	"io"
	"slices"
	"sync"
)

const (
	// maxLastLines and maxLastBytes bound the log lines held in memory.
	maxLastLines = 2000
	maxLastBytes = 1 << 20
)

// lastLines are the broker's latest log lines, for a debug bundle. A process
// runs one broker.
var lastLines = &lineRing{}

// lineRing keeps the latest lines written to it.
type lineRing struct {
	mu    sync.Mutex
	lines [][]byte
	size  int
}

var _ io.Writer = (*lineRing)(nil)

// Write implements io.Writer: one call, one line, as zerolog writes.
func (r *lineRing) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := slices.Clone(p[:min(len(p), maxLastBytes/16)])
	r.lines, r.size = append(r.lines, line), r.size+len(line)
	drop := 0
	for len(r.lines)-drop > maxLastLines || r.size > maxLastBytes {
		r.size -= len(r.lines[drop])
		drop++
	}
	r.lines = slices.Delete(r.lines, 0, drop)
	return len(p), nil
}

func (r *lineRing) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.lines...)
}
