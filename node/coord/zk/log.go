// Package zk is the ZooKeeper backend of coord: step 3 of a job's way, on an
// ensemble that a site runs already.
//
// A call goes to the leader as package relay says. The leader appends an entry as one
// transaction: check that /lead is still of its version, check the entry before,
// create log/NUMBER (append.go), and hands it to the members once it is there
// (feed.go, feedreceiver.go); those that are not handed it follow by a watch on the next
// number (follow.go). Who leads is decided by an ephemeral and fenced by the version of
// /lead (leaderterm.go). The leader writes snapshots and trims (snapshot.go). Package
// tree has all znodes, DESIGN.md the reasons. The package imports fsm and coord, never the
// broker.
package zk

import (
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Log is one member.
type Log struct {
	*facade.Member
	cfg  Config
	t    timing
	log  zerolog.Logger
	line [16]byte // the lineage: the federation's id in the first epoch
	// who is this member, and by whom it knows the others; nil: members have no keys.
	who *relay.Identity

	c        *client
	machine  machine
	peers    *relay.Dialer
	receiver feedReceiver
	// sure is the connection (client.connects) on which this tree was seen last.
	sure  atomic.Uint64
	nonce string // of this Log, in its ephemerals: site/random

	leaderTerm atomic.Pointer[leaderTerm] // nil while this member does not lead
	holdOff    atomic.Int64               // until then (sinceStart) it lets others lead
	fitness    fitness
	reach      reach
	hole       hole            // what this member does not find in the tree
	expelled   map[string]bool // of whom that was told; watchRoles owns it
	// falseHolder is the znode at /leader (its zxid) that nobody leads by, since when; watchRoles owns them.
	falseHolder int64
	falseSince  time.Duration
	mending     mending
	turns       turns
	// termChanged fires when term changes.
	termChanged coord.Broadcast
	grown       chan struct{} // entries were applied: is a snapshot due?
	group       group
	kick        chan struct{} // look at the roles again
}

var (
	_ coord.Log       = (*Log)(nil)
	_ coord.Comparing = (*Log)(nil)
)

// Status implements coord.Log.
func (l *Log) Status() coord.Status {
	s := l.group.status()
	s.IsLead = l.Calls.Leads()
	return s
}

// fail stops this member by itself: it takes no further part in the group, and
// its ephemerals go.
func (l *Log) fail(err error) {
	if l.Fail(err) {
		go func() { _ = l.Close() }()
	}
}

// Close implements coord.Log.
func (l *Log) Close() error {
	l.Shut(func() error {
		l.Stop(l.t.drain, func() {})
		return l.release()
	})
	<-l.Ended()
	return l.CloseError()
}
