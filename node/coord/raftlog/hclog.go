package raftlog

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// logAdapter turns raft's log lines into ours: its errors are warnings, one line
// of a kind in ten seconds (an absent peer makes many a second); all else is
// for debugging.
type logAdapter struct {
	log zerolog.Logger

	mu    sync.Mutex
	quiet map[string]time.Time // by message: raft's are constants
}

var _ hclog.SinkAdapter = (*logAdapter)(nil)

func raftLogger(log zerolog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(&logAdapter{log: log, quiet: map[string]time.Time{}})
	return l
}

// Accept implements hclog.SinkAdapter.
func (c *logAdapter) Accept(_ string, level hclog.Level, msg string, args ...any) {
	ev := c.log.Debug()
	switch {
	case level == hclog.Error && c.allow(msg):
		ev = c.log.Warn()
	case level <= hclog.Debug:
		ev = c.log.Trace()
	}
	if !ev.Enabled() {
		return
	}
	for i := 0; i+1 < len(args); i += 2 {
		ev = ev.Str(fmt.Sprint(args[i]), fmt.Sprint(args[i+1]))
	}
	ev.Msg("raft: " + msg)
}

func (c *logAdapter) allow(msg string) bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.quiet[msg]) || len(c.quiet) > 256 {
		return false
	}
	c.quiet[msg] = now.Add(relay.LogEvery)
	return true
}
