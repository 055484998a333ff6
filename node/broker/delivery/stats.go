package delivery

import "github.com/cloudshare/cloudshare/fsm/command"

// Stats are what a loop has to do.
type Stats struct {
	Waiting  int   // deliveries that are not here
	OldestMs int64 // for how long, by log time, the oldest of them
	Bytes    int64 // that have come since the start
	Full     bool  // this site has no room for them
}

// Stats returns what is to be done.
func (l *Loop) Stats() Stats {
	s := Stats{Bytes: l.bytes.Load()}
	now := l.cfg.State.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.all {
		if !d.said {
			s.Waiting++
			s.OldestMs = max(s.OldestMs, now-d.SinceMs)
		}
	}
	s.Full = l.full && s.Waiting > 0
	return s
}

// Why says what the outputs of an attempt wait for, "" if nothing is known, or they do not.
func (l *Loop) Why(ref command.AttemptRef) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.all[ref]; d != nil {
		return d.why
	}
	return ""
}
