package membership

import (
	"bytes"
	"io"
	"log"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// maxKinds bounds the limiter; what is new beyond it shares one kind.
const maxKinds = 64

// limiter lets one line of a kind through in a while and counts the others.
type limiter struct {
	every time.Duration
	now   func() time.Time

	mu    sync.Mutex
	kinds map[string]*kind // Invariant: at most maxKinds+1.
}

type kind struct {
	next   time.Time
	unsaid uint64
}

func newLimiter(every time.Duration, now func() time.Time) *limiter {
	return &limiter{every: every, now: now, kinds: map[string]*kind{}}
}

// allow reports whether to speak, and how many lines were not said before.
func (l *limiter) allow(name string) (unsaid uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[name]
	if k == nil {
		if len(l.kinds) >= maxKinds {
			name = ""
		}
		if k = l.kinds[name]; k == nil {
			k = &kind{}
			l.kinds[name] = k
		}
	}
	now := l.now()
	if now.Before(k.next) {
		k.unsaid++
		return 0, false
	}
	unsaid, k.unsaid, k.next = k.unsaid, 0, now.Add(l.every)
	return unsaid, true
}

// warn starts a warning of a kind; nil, which zerolog takes, if one was
// written lately.
func (l *limiter) warn(log *zerolog.Logger, name string) *zerolog.Event {
	unsaid, ok := l.allow(name)
	if !ok {
		return nil
	}
	ev := log.Warn()
	if unsaid > 0 {
		ev = ev.Uint64("more", unsaid)
	}
	return ev
}

// logAdapter turns memberlist's log lines into ours: its errors and warnings are
// warnings, few of a kind; all else is for debugging. One line is more than
// talk: memberlist tells a suspicion by no other means.
type logAdapter struct {
	log     zerolog.Logger
	limit   *limiter
	suspect func(site string)
	quiet   atomic.Bool // after Close: complaints about the closed port are no news
	unheard unheard
}

var _ io.Writer = (*logAdapter)(nil)

func (c *logAdapter) logger() *log.Logger { return log.New(c, "", 0) }

const (
	suspectPrefix = "Suspect "
	suspectSuffix = " has failed, no acks received"
	maxLine       = 400
)

// Write implements io.Writer: one call is one line, "[LEVEL] memberlist: text".
func (c *logAdapter) Write(p []byte) (int, error) {
	level, text := split(string(bytes.TrimSpace(p[:min(len(p), maxLine)])))
	if site, ok := strings.CutPrefix(text, suspectPrefix); ok {
		if site, ok = strings.CutSuffix(site, suspectSuffix); ok {
			c.suspect(site)
		}
	}
	if c.explain(text) {
		level = "DEBUG"
	}
	ev := c.log.Debug()
	if level != "DEBUG" && level != "INFO" && !c.quiet.Load() {
		if loud := c.limit.warn(&c.log, opening(text)); loud != nil {
			ev = loud
		}
	}
	ev.Msg("gossip: " + text)
	return len(p), nil
}

// split takes the level off; a line without one counts as an error.
func split(line string) (level, text string) {
	level, text, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	if !ok {
		level, text = "ERR", line
	}
	return level, strings.TrimPrefix(text, "memberlist: ")
}

// opening returns a line's kind: its first three words.
func opening(s string) string {
	words := strings.SplitN(s, " ", 4)
	return strings.Join(words[:min(3, len(words))], " ")
}
