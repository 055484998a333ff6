package raftlog

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// When all members stop at once, one of them leads until its end. Nobody is left to take the leadership, and no
// majority to commit what is in flight: it must wait for neither. So the leadership is offered only to a voter that
// says that it would have it, and without one entries in flight get a moment only.

// shutDown gives the leadership away, and ends what runs.
func (l *Log) shutDown() error {
	drain := l.t.drain
	if !l.handOver() {
		drain = l.t.unheard
	}
	l.Stop(drain, func() {
		l.halt()
		l.trans.Wait()
	})
	return l.release()
}

// handOver gives the leadership away before leaving, so that the others need no
// timeout to notice. It reports false if this member leads on, since no voter took it.
func (l *Log) handOver() bool {
	if l.raft.State() != raft.Leader || len(l.Status().Voters) < 2 || l.Ctx.Err() != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(l.Ctx, l.t.election+l.t.enqueue)
	defer cancel()
	to, ok := l.firstToLead(ctx)
	if !ok {
		l.log.Debug().Msg("no other voter would lead: the leadership is not handed over")
		return false
	}
	transfer := func() raft.Future { return l.raft.LeadershipTransferToServer(to.id, to.addr) }
	select {
	case err := <-l.leadership.given.begin(transfer):
		if err != nil {
			l.log.Debug().Err(err).Str("to", string(to.id)).Msg("the leadership was not handed over")
		}
		return err == nil
	case <-ctx.Done():
		return false
	}
}

// firstToLead asks all voters that have what is committed, then the others, each at the same time, and returns the
// first one that would lead.
func (l *Log) firstToLead(ctx context.Context) (first voterDisk, ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ready, behind []voterDisk
	for _, v := range l.leadership.otherVoters(l.raft.CommitIndex(), time.Now()) {
		if v.ready {
			ready = append(ready, v)
		} else {
			behind = append(behind, v)
		}
	}
	if first, ok = l.firstOf(ctx, ready); !ok {
		first, ok = l.firstOf(ctx, behind)
	}
	return first, ok
}

// firstOf asks voters at the same time.
func (l *Log) firstOf(ctx context.Context, voters []voterDisk) (voterDisk, bool) {
	answers := make(chan *voterDisk, len(voters))
	for _, v := range voters {
		l.WG.Go(func() {
			if l.leadership.asksToLead(ctx, v, reasonUnfit) { // a slow disk is better than none
				answers <- &v
				return
			}
			answers <- nil
		})
	}
	for range voters {
		if v := <-answers; v != nil {
			return *v, true
		}
	}
	return voterDisk{}, false
}
