// Package raftlog is the Raft backend of coord: step 3 of a job's way, on
// hashicorp/raft with one peer listener.
//
// Package relay has the way of a call to the lead and back; here are the lead's
// log itself (backend.go, store.go), what members apply (machine.go), and who the
// members are (join.go, voters.go, recover.go). The package imports fsm and
// coord, never the broker.
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

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Log is one member.
type Log struct {
	cfg  Config
	t    timing
	log  zerolog.Logger
	line lineage
	// instance is this process, in its questions and answers: nobody else's.
	instance string
	opened   chan struct{} // closed once Open is over: line and raft are there

	ctx    context.Context // ends when Close or a failure begins
	cancel context.CancelFunc
	wg     sync.WaitGroup // this package's goroutines

	lock    *os.File
	raft    *raft.Raft
	store   *store
	snaps   raft.SnapshotStore
	mux     *relay.Mux
	dialer  dialer
	stream  *stream
	trans   *transport
	machine *machine
	calls   *relay.Calls
	checker *compare.Checker       // nil if the machine has no checkpoints
	moving  sync.Mutex             // held while the leader changes a member's address
	backs   chan struct{}          // has room for the dial-backs under way
	member  *member                // of watch: the file, as long as a join is not over; nil afterwards
	resting atomic.Bool            // after Demote: this member does not stand for voter
	unfit   atomic.Pointer[string] // why this member should not lead; nil or "" = it may
	handed  handed
	given   transfers
	halt    func() // shuts raft down behind the transfers, once, and waits

	reloading sync.Mutex // raft's configuration is being changed

	poke    chan struct{} // something in the status may have changed
	changed chan struct{}
	caught  atomic.Bool

	life      *relay.Life
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
func (l *Log) Addr() string { return dialed(raft.ServerAddress(l.stream.addr)) }

// Propose implements coord.Log.
func (l *Log) Propose(ctx context.Context, cmds ...fsm.Command) ([]fsm.Result, error) {
	return l.calls.Propose(ctx, cmds...)
}

// Sync implements coord.Log.
func (l *Log) Sync(ctx context.Context) (uint64, error) {
	if err := l.calls.Sync(ctx); err != nil {
		return 0, err
	}
	return l.machine.index.Load(), nil
}

// Renew implements coord.Log.
func (l *Log) Renew(ctx context.Context, r coord.Renewal) error { return l.calls.Renew(ctx, r) }

// Grant implements coord.Log.
func (l *Log) Grant(g coord.Grantor) { l.calls.Grant(g) }

// Status implements coord.Log.
func (l *Log) Status() coord.Status {
	_, lead := l.raft.LeaderWithID()
	s := coord.Status{
		Lead: string(lead), IsLead: l.calls.Leads(), Term: l.raft.CurrentTerm(), CaughtUp: l.caught.Load(),
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
func (l *Log) Failed() <-chan struct{} { return l.life.Failed() }

// Err implements coord.Log.
func (l *Log) Err() error { return l.life.Err() }

// fail stops this member by itself: it takes no further part in the group.
func (l *Log) fail(err error) {
	if l.life.Fail(err) {
		l.log.Error().Err(err).Msg("the log stops")
		l.wg.Go(func() {
			l.calls.End()
			l.cancel()
			l.halt()
		})
	}
}

// Close implements coord.Log. It gives up waiting for a disk that hangs: then
// only the end of the process frees the directory.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		l.calls.End()
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
	l.calls.Drain(l.t.drain)
	l.mux.Close()
	l.calls.CloseReads()
	l.halt()
	l.trans.wg.Wait()
	l.calls.Wait()
	l.wg.Wait()
	l.closeErr = l.release()
}

// handOver gives the lead away before leaving, so that the others need no
// timeout to notice.
func (l *Log) handOver() {
	if l.raft.State() != raft.Leader || len(l.Status().Voters) < 2 || l.ctx.Err() != nil {
		return
	}
	wait := time.NewTimer(l.t.election + l.t.enqueue)
	defer wait.Stop()
	select {
	case err := <-l.given.begin(l.raft.LeadershipTransfer):
		if err != nil {
			l.log.Debug().Err(err).Msg("the lead was not handed over")
		}
	case <-wait.C:
	}
}
