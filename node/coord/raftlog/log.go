// Package raftlog is the Raft backend of coord: step 3 of a job's way, on
// hashicorp/raft with one peer listener.
//
// Package relay has the way of a call to the leader and back, facade what a member is
// on any backend, transport raft's requests, and store its log. Here are the leader's
// end (backend.go), what members apply (machine.go), and who the members are (join.go,
// voters.go, recover.go). The package imports fsm and coord, never the broker.
package raftlog

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Log is one member.
type Log struct {
	*facade.Member
	cfg  Config
	t    timing
	log  zerolog.Logger
	line lineage
	// instance is this process, in its questions and answers: nobody else's.
	instance string
	opened   chan struct{} // closed once Open is over: line and raft are there

	raft       *raft.Raft
	store      *store.Store
	snaps      raft.SnapshotStore
	dialer     dialer
	stream     *transport.Stream
	trans      *transport.Transport
	machine    *machine
	moving     sync.Mutex    // held while the leader changes a member's address
	backs      chan struct{} // has room for the dial-backs under way
	member     *member       // of watch: the file, as long as a join is not over; nil afterwards
	leadership *leadership
	voting     *voterChoice
	halt       func() // shuts raft down behind the transfers, once, and waits

	reloading sync.Mutex // raft's configuration is being changed

	stopping atomic.Bool // Close has begun: it does not want to lead

	poke   chan struct{} // something in the status may have changed
	caught atomic.Bool
}

// remedyDiffers says how to go on behind a stop. The log of entries is kept: a
// member that forgot what it has acknowledged must not vote under its name.
const remedyDiffers = "then start the broker again: it rebuilds its state from its own log, and compares it; " +
	"if it stops again, move its data directory away, too, and come back on an empty one as after a wiped disk (cloudshare guide operator)"

var (
	_ coord.Log       = (*Log)(nil)
	_ coord.Comparing = (*Log)(nil)
)

// Status implements coord.Log.
func (l *Log) Status() coord.Status {
	_, lead := l.raft.LeaderWithID()
	s := coord.Status{
		Lead: string(lead), IsLead: l.Calls.Leads(), Term: l.raft.CurrentTerm(), CaughtUp: l.caught.Load(),
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

// peers returns the members by the group's configuration.
func (l *Log) peers() []compare.Member {
	var out []compare.Member
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		out = append(out, compare.Member{
			Site: string(s.ID), Addr: transport.HostPort(s.Address),
			Voter: s.Suffrage == raft.Voter,
		})
	}
	return out
}

// Peers returns where the other members are, by the group's configuration.
func (l *Log) Peers() (list []relay.Peer) {
	for _, m := range l.peers() {
		if m.Site != l.cfg.Site {
			list = append(list, relay.Peer{Site: m.Site, Addr: m.Addr})
		}
	}
	return list
}

// fail stops this member by itself: it takes no further part in the group.
func (l *Log) fail(err error) {
	if l.Fail(err) {
		l.WG.Go(func() {
			l.Calls.End()
			l.Cancel()
			l.halt()
		})
	}
}

// Close implements coord.Log; stop.go has what it does. It gives up waiting for a disk that hangs: then
// only the end of the process frees the directory.
func (l *Log) Close() error {
	l.stopping.Store(true)
	l.Shut(l.shutDown)
	look := time.NewTicker(l.t.stall / 4)
	defer look.Stop()
	for {
		select {
		case <-l.Ended():
			return l.CloseError()
		case <-look.C:
			if what, took := l.store.Oldest(time.Now()); took > l.t.hang {
				return fmt.Errorf("close log: %s: %w for %v: end the process", what, ErrStalled, took.Round(time.Second))
			}
		}
	}
}
