// Package raftlog is the Raft backend of coord: step 3 of a job's way, on
// hashicorp/raft with one peer listener.
//
// A call of Propose travels like this:
//
//  1. Propose encodes it and puts it into the table of pending calls (propose.go, pending.go).
//  2. It goes to this member's sequencer if it leads, else over one connection
//     to the lead's (forward.go, serve.go, frames.go).
//  3. The lead collects what waits into an entry, stamps it, and hands it to
//     raft, with a header that names the calls (sequencer.go, entry.go).
//  4. Each member applies the entry; the one that proposed finds its calls in
//     the header and returns their results (machine.go).
//
// Whatever fails in between is repeated under the same command ids until the
// caller's context ends. The package imports fsm and coord, never the broker.
package raftlog

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Log is one member.
type Log struct {
	cfg  Config
	t    timing
	log  zerolog.Logger
	line lineage

	ctx    context.Context // ends when Close or a failure begins
	cancel context.CancelFunc
	wg     sync.WaitGroup // this package's goroutines
	flying sync.WaitGroup // the sequencer's two: they wait for raft's futures

	lock    *os.File
	raft    *raft.Raft
	store   *store
	mux     *mux
	dialer  *dialer
	stream  *stream
	trans   *transport
	machine *machine
	pending *pending
	seq     *sequencer
	forward *forwarder
	reads   *reads
	grantor atomic.Pointer[coord.Grantor]
	resting atomic.Bool // after Demote: this member does not stand for voter
	halt    func()      // shuts raft down, once, and waits

	poke       chan struct{} // something in the status may have changed
	changed    chan struct{}
	leadChange coord.Broadcast
	caught     atomic.Bool

	failOnce  sync.Once
	failed    chan struct{}
	err       error // set before failed is closed
	closeOnce sync.Once
	closed    chan struct{} // Close has ended
	closeErr  error         // set before closed is closed
}

var _ coord.Log = (*Log)(nil)

// Federation returns the federation's id, which a joining member learns.
func (l *Log) Federation() [16]byte { return l.line.federation }

// Lineage names the epoch's members: a random id in a federation that was
// recovered (recover.go), the federation's own before. Members of different
// lineages do not talk to each other.
func (l *Log) Lineage() [16]byte { return l.line.id }

// Addr returns the peer address that others dial.
func (l *Log) Addr() string { return string(l.stream.addr) }

// lead says where calls go now: to this member, to an address, or nowhere.
func (l *Log) lead() (addr string, self bool) {
	a, id := l.raft.LeaderWithID()
	return string(a), string(id) == l.cfg.Site
}

// Status implements coord.Log.
func (l *Log) Status() coord.Status {
	_, lead := l.raft.LeaderWithID()
	s := coord.Status{
		Lead: string(lead), IsLead: l.seq.leads(), Term: l.raft.CurrentTerm(), CaughtUp: l.caught.Load(),
	}
	for _, server := range l.raft.GetConfiguration().Configuration().Servers {
		s.Members = append(s.Members, string(server.ID))
		if server.Suffrage == raft.Voter {
			s.Voters = append(s.Voters, string(server.ID))
		}
	}
	slices.Sort(s.Members)
	slices.Sort(s.Voters)
	return s
}

// Changed implements coord.Log.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// Failed implements coord.Log.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err implements coord.Log.
func (l *Log) Err() error {
	select {
	case <-l.failed:
		return l.err
	default:
		return nil
	}
}

// fail stops this member by itself: it takes no further part in the group.
func (l *Log) fail(err error) {
	l.failOnce.Do(func() {
		l.err = err
		close(l.failed)
		l.log.Error().Err(err).Msg("the log stops")
		l.wg.Go(func() {
			l.endCalls()
			l.cancel()
			l.halt()
		})
	})
}

func (l *Log) closedErr() error {
	if err := l.Err(); err != nil {
		return fmt.Errorf("%w: %w", coord.ErrClosed, err)
	}
	return coord.ErrClosed
}

// endCalls settles the calls under way and refuses new ones.
func (l *Log) endCalls() {
	closed := l.closedErr()
	l.pending.close(closed, func(a attempts) error {
		if a.maybe() {
			return fmt.Errorf("%w: %w", coord.ErrUnknown, closed)
		}
		return closed
	})
}

// Close implements coord.Log. It gives up waiting for a disk that hangs: then
// only the end of the process frees the directory.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		l.endCalls()
		go l.shut()
	})
	look := time.NewTicker(l.t.stall / 4)
	defer look.Stop()
	for {
		select {
		case <-l.closed:
			return l.closeErr
		case <-look.C:
			if what, took := l.store.oldest(time.Now()); took > l.t.hang {
				return fmt.Errorf("close log: %s: %w for %v: end the process", what, ErrStalled, took.Round(time.Second))
			}
		}
	}
}

func (l *Log) shut() {
	defer close(l.closed)
	l.handOver()
	l.cancel()
	waitAtMost(&l.flying, l.t.drain)
	l.mux.close()
	l.reads.close()
	l.halt()
	l.trans.wg.Wait()
	l.forward.wg.Wait()
	l.wg.Wait()
	l.closeErr = l.release()
}

// handOver gives the lead away before leaving, so that the others need no
// timeout to notice.
func (l *Log) handOver() {
	if l.raft.State() != raft.Leader || len(l.Status().Voters) < 2 || l.ctx.Err() != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.raft.LeadershipTransfer().Error(); err != nil {
			l.log.Debug().Err(err).Msg("the lead was not handed over")
		}
	})
	waitAtMost(&wg, l.t.election+l.t.enqueue)
}

// waitAtMost waits for goroutines that wait for raft, which answers in time
// unless its disk hangs.
func waitAtMost(wg *sync.WaitGroup, d time.Duration) {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		wg.Wait()
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
	case <-t.C:
	}
}

// waitApplied returns once this member has applied the raft index.
func (l *Log) waitApplied(ctx context.Context, index uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(l.closedErr()) })()
	return l.machine.position.wait(ctx, index)
}
