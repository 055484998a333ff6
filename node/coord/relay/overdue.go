package relay

import (
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// owedReplies is how many times Timing.Reply a leader that answers others may owe the answer to one call before that
// is sent again. An honest leader has ordered it by then, or orders nothing: it waits for a snapshot, or its disk.
const owedReplies = 3

// lateness is how often a call was given up at a leader: each time it is waited for twice as long. So a leader that
// orders nothing for a while gets few copies, which it holds until then.
type lateness struct {
	lead  uint64 // of forwarder.lead
	times int
}

// leadChanged ends the link if it goes to another leader than to, and forgets what earlier ones owed.
func (f *forwarder) leadChanged(to Peer) {
	f.mu.Lock()
	f.lead++
	f.mu.Unlock()
	f.drop(to)
}

// giveUpOverdue ends a link whose leader answers nothing for too long, and gives up the calls that one which answers
// others has left out: they are sent again, over the same link, since those that are only late need no second copy.
func (f *forwarder) giveUpOverdue(now time.Time) {
	f.mu.Lock()
	l, lead := f.link, f.lead
	f.mu.Unlock()
	if l == nil {
		return
	}
	if l.isOverdue(now) {
		l.stop()
		return
	}
	f.reportOutcome(l.takeOverdue(now, lead), Unknown)
	coord.Signal(l.kick) // what has waited for their bundle may go
}

// takeOverdue takes out the calls whose answers are owed for too long. One that is not due again yet keeps no other
// waiting any more.
func (l *link) takeOverdue(now time.Time, lead uint64) (calls []*proposal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	patience := owedReplies * l.f.t.Reply
	for seq, c := range l.sent {
		if c.late.lead != lead {
			c.late = lateness{lead: lead}
		}
		switch waited := now.Sub(c.at); {
		case waited > patience<<min(c.late.times, 10):
			c.late.times++
			calls = append(calls, l.unsend(seq))
		case waited > patience:
			l.land(&c)
			l.sent[seq] = c
		}
	}
	return calls
}

// land takes a call for one that its bundle does not wait for. REQUIRES: l.mu held.
func (l *link) land(c *sentCall) {
	if c.left == nil {
		return
	}
	if *c.left--; *c.left == 0 {
		l.flying--
	}
	c.left = nil
}
