// Package zk is the ZooKeeper backend of coord: step 3 of a job's way, on an
// ensemble that a site runs already.
//
// A call goes to the lead as package relay says. The lead appends an entry as one
// transaction: check that /lead is still of its version, check the entry before,
// create log/NUMBER (append.go), and hands it to the members once it is there
// (feed.go, hear.go); those that are not handed it follow by a watch on the next
// number (follow.go). Who leads is decided by an ephemeral and fenced by the version of
// /lead (reign.go). The lead writes snapshots and trims (snapshot.go). tree.go has
// all znodes, DESIGN.md the reasons. The package imports fsm and coord, never the
// broker.
package zk

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Log is one member.
type Log struct {
	cfg        Config
	t          timing
	log        zerolog.Logger
	federation [16]byte
	line       [16]byte // the lineage: the federation's id in the first epoch
	addr       string

	ctx    context.Context // ends when Close or a failure begins
	cancel context.CancelFunc
	wg     sync.WaitGroup // this package's goroutines

	lock    *os.File
	c       *client
	mux     *relay.Mux
	calls   *relay.Calls
	checker *compare.Checker // nil if the machine has no checkpoints
	machine machine
	peers   *relay.Dialer
	ear     ear
	// sure is the connection (client.connects) on which this tree was seen last.
	sure  atomic.Uint64
	nonce string // of this Log, in its ephemerals: site/random

	reign   atomic.Pointer[reign]  // nil while this member does not lead
	resting atomic.Bool            // after Demote: this member does not stand
	holdOff atomic.Int64           // until then (sinceStart) it lets others lead
	unfit   atomic.Pointer[string] // why this member should not lead; nil or "" = it may
	fitness fitness
	// reignNews fires when reign changes.
	reignNews coord.Broadcast
	grown     chan struct{} // entries were applied: is a snapshot due?
	group     group
	kick      chan struct{} // look at the roles again
	changed   chan struct{}

	life      *relay.Life
	closeOnce sync.Once
	closed    chan struct{} // Close has ended
	closeErr  error         // set before closed is closed
}

var _ coord.Log = (*Log)(nil)

// Federation returns the federation's id, which a joining member learns.
func (l *Log) Federation() [16]byte { return l.federation }

// Lineage names the epoch's members: those of different lineages do not talk to
// each other. In the first epoch it is the federation's id.
func (l *Log) Lineage() [16]byte { return l.line }

// Addr returns the peer address that others dial.
func (l *Log) Addr() string { return l.addr }

// Propose implements coord.Log.
func (l *Log) Propose(ctx context.Context, cmds ...fsm.Command) ([]fsm.Result, error) {
	return l.calls.Propose(ctx, cmds...)
}

// Sync implements coord.Log.
func (l *Log) Sync(ctx context.Context) (uint64, error) {
	if err := l.calls.Sync(ctx); err != nil {
		return 0, err
	}
	return l.machine.position.Now(), nil
}

// Renew implements coord.Log.
func (l *Log) Renew(ctx context.Context, r coord.Renewal) error { return l.calls.Renew(ctx, r) }

// Grant implements coord.Log.
func (l *Log) Grant(g coord.Grantor) { l.calls.Grant(g) }

// Status implements coord.Log.
func (l *Log) Status() coord.Status {
	s := l.group.status()
	s.IsLead = l.calls.Leads()
	return s
}

// Changed implements coord.Log.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// Failed implements coord.Log.
func (l *Log) Failed() <-chan struct{} { return l.life.Failed() }

// Err implements coord.Log.
func (l *Log) Err() error { return l.life.Err() }

// fail stops this member by itself: it takes no further part in the group, and
// its ephemerals go.
func (l *Log) fail(err error) {
	if l.life.Fail(err) {
		l.log.Error().Err(err).Msg("the log stops")
		go func() { _ = l.Close() }()
	}
}

// Close implements coord.Log.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		l.calls.End()
		l.cancel()
		l.calls.Drain(l.t.drain)
		l.mux.Close()
		l.calls.CloseReads()
		l.calls.Wait()
		l.wg.Wait()
		l.c.close() // ends the session: the others need no timeout to notice
		l.closeErr = l.lock.Close()
		close(l.closed)
	})
	<-l.closed
	return l.closeErr
}
