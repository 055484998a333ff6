package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

const (
	// silentConns to each peer port, all of one stranger.
	silentConns = 200
	// silentApart they begin, so that those that are closed in time make no gap.
	silentApart = 15 * time.Millisecond
	// crowdedWithin all brokers are ready in spite of them.
	crowdedWithin = electionWithin + lag
)

// silent has a stranger keep connections to all peer ports open that say nothing,
// while all brokers start again.
func silent(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	crowd, leave := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer leave()
	for _, m := range r.members {
		for i := range silentConns {
			conns.Go(func() {
				_ = sleep(crowd, time.Duration(i)*silentApart)
				keepOpen(crowd, r.stranger(), address(m.host, m.place.peer))
			})
		}
	}
	r.say("a stranger keeps %d connections to each peer port open", silentConns)
	if err := sleep(ctx, lag); err != nil {
		return err
	}
	for i := range 3 { // one may be lucky
		if err := r.startCrowded(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// startCrowded kills all brokers and starts them: each must reach the others.
func (r *run) startCrowded(ctx context.Context, round int) error {
	r.say("all brokers die and start again")
	if err := killAll(r.members); err != nil {
		return err
	}
	began := time.Now()
	limit, cancel := context.WithTimeoutCause(ctx, crowdedWithin, fmt.Errorf("not within %s", crowdedWithin))
	defer cancel()
	if err := r.launchAll(limit); err != nil {
		return err
	}
	if _, err := r.submit(ctx, 2, plan.Job{
		Name: fmt.Sprintf("crowded-%d", round+1), Count: 1, Length: time.Second,
		Sites: []int{3},
	}); err != nil {
		return err
	}
	r.say("acknowledged %s after they began to start", time.Since(began).Round(time.Millisecond))
	return nil
}

// keepOpen keeps one connection that says nothing open, again and again.
func keepOpen(ctx context.Context, from *netlab.Host, addr string) {
	for ctx.Err() == nil {
		conn, err := from.Dial(ctx, "tcp", addr)
		if err == nil {
			unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_, _ = io.Copy(io.Discard, conn) // until the other end has enough of it
			unhook()
			conn.Close()
		}
		_ = sleep(ctx, 10*time.Millisecond)
	}
}

// forgedTerm has somebody with a member's key ask every broker for its vote in the last term there
// is. Nobody may believe it, or there is no later term to elect a leader in.
func forgedTerm(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	st, err := r.members[0].Status(ctx)
	if err != nil {
		return fmt.Errorf("ask for the federation: %w", err)
	}
	fed, err := uuid.Parse(st.Federation)
	if err != nil {
		return fmt.Errorf("parse federation: %w", err)
	}
	for i, m := range r.members {
		as := r.members[(i+1)%len(r.members)]
		layer, cause := hostile(r.stranger(), as, relay.Peer{Site: m.Name, Addr: address(m.host, m.place.peer)}, fed)
		if cause != nil {
			return cause
		}
		err = forgeVote(layer, as.Name)
		r.say("a thief of keys asks %s for its vote in the last term, as %s: %v", m.Name, as.Name, err)
	}
	if _, err = r.submit(ctx, 2, plan.Job{Name: "after", Count: 1, Length: time.Second, Sites: []int{3}}); err != nil {
		return err
	}
	r.say("all brokers restart")
	if err = killAll(r.members); err != nil {
		return err
	}
	return r.launchAll(ctx)
}

// forgeVote asks one broker for its vote in a term after which there is none.
func forgeVote(layer *forgedLayer, as string) error {
	trans := raft.NewNetworkTransport(layer, 1, lag, io.Discard)
	defer trans.Close()
	req := raft.RequestVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(as), Addr: []byte(as)},
		Term:      math.MaxUint64, LastLogIndex: math.MaxUint64, LastLogTerm: math.MaxUint64, LeadershipTransfer: true,
	}
	var answer raft.RequestVoteResponse
	to := layer.to
	if err := trans.RequestVote(raft.ServerID(to.Site), raft.ServerAddress(to.Addr), &req, &answer); err != nil {
		return fmt.Errorf("ask for the vote: %w", err)
	}
	if answer.Granted {
		return errors.New("it was granted")
	}
	return nil
}

// forgedLayer dials one broker as a member would, and takes no connections.
type forgedLayer struct {
	to     relay.Peer
	fed    [16]byte
	dialer relay.Dialer
}

var _ raft.StreamLayer = (*forgedLayer)(nil)

// Dial implements raft.StreamLayer.
func (l *forgedLayer) Dial(_ raft.ServerAddress, d time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return l.dialer.Dial(ctx, l.to, relay.KindRaft, l.fed)
}

// Accept implements net.Listener.
func (l *forgedLayer) Accept() (net.Conn, error) { return nil, net.ErrClosed }

// Close implements net.Listener.
func (l *forgedLayer) Close() error { return nil }

// Addr implements net.Listener.
func (l *forgedLayer) Addr() net.Addr { return &net.TCPAddr{} }
