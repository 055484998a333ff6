package broker

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// drift is the part of itself by which another machine's clock may run faster than this one's: one in a thousand, ten
// times as much as clocks differ that nobody sets.
const drift = 1000

// outrun is how far ahead of this machine's clock the log's time may be before it is told. An honest leader may have it
// lag while disks hang (hang in coord/raftlog, 15 to 30 s), and catch up in one entry.
const outrun = time.Minute

// logTime compares the log's time, which the leader stamps, with this machine's clock. Leaders that change and
// federations that stand have it fall behind; nothing honest has it run ahead. All durations that a leader could
// lengthen, of leases, of runs, of what is charged, are log time.
type logTime struct {
	mu sync.Mutex
	// least is the smallest difference seen, log time − clock; nil before the first. Invariant: it was so at a moment
	// at which this replica had all that was ordered, else catching up would look like running ahead.
	least *int64
	ahead time.Duration
	told  bool
}

// compare notes that at some moment between two of this machine's clock (ns since its boot) the log's time was at
// least logMs, by a replica that had all that was ordered before the first. lags says that long work may hold it up,
// which it catches up with afterwards. It returns how far ahead the log's time is of what the clock allows, and
// whether to tell that: once, until it is not so any more.
func (l *logTime) compare(before, after, logMs int64, lags bool) (ahead time.Duration, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.least == nil && lags {
		return 0, false
	}
	ns := logMs * int64(time.Millisecond)
	if d := ns - before - before/drift; l.least == nil || d < *l.least && !lags {
		l.least = &d
	}
	l.ahead = max(0, time.Duration(ns-after-after/drift-*l.least))
	late := l.ahead > outrun
	tell = late && !l.told
	l.told = late
	return l.ahead, tell
}

// now returns what compare found last.
func (l *logTime) now() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ahead
}

// checkLogTime compares the log's time with this machine's clock. A renewal that was sent at a moment has this replica
// have all that was ordered before.
func (b *Broker) checkLogTime(sent int64) {
	var logMs int64
	var lags bool
	b.cfg.Replica.View(func(s *fsm.State) { logMs, lags = s.Time(), s.Pending() })
	if ahead, tell := b.logTime.compare(sent, executor.Boottime(), logMs, lags); tell {
		b.cfg.Logger.Warn().Dur("ahead", ahead).Str("lead", b.cfg.Log.Status().Lead).
			Msg("the federation's time runs faster than this machine's clock: its leader stamps it; runs and leases are measured by it")
	}
}
