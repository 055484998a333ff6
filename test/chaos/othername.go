package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
)

// beatEvery a stranger says that the dead leader leads: before any broker gives a
// leader up.
const beatEvery = 50 * time.Millisecond

// otherName has a stranger, who greets as one member, say on that connection that the
// leader leads, on and on, while that one is dead. Nobody may believe it, or there is
// no election.
func otherName(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	dead := r.byName(r.leadName(ctx))
	rest := rotate(r.members, r.number(dead))[:2]
	st, err := rest[0].Status(ctx)
	if err != nil {
		return fmt.Errorf("ask for the term: %w", err)
	}
	fed, err := uuid.Parse(st.Federation)
	if err != nil {
		return fmt.Errorf("parse federation: %w", err)
	}
	crowd, leave := context.WithCancel(ctx)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer leave()
	for i, m := range rest {
		to := relay.Peer{Site: m.Name, Addr: address(m.host, m.place.peer)}
		layer, cause := hostile(r.stranger(), rest[1-i], to, fed)
		if cause != nil {
			return cause
		}
		beats.Go(func() { keepLeading(crowd, layer, dead.Name, st.Term) })
	}
	r.say(
		"a thief of keys says to the others that %s leads term %d, to each by the key of the other one",
		dead.Name,
		st.Term,
	)
	if err = sleep(ctx, lag); err != nil {
		return err
	}
	r.say("kill %s", dead.Name)
	if err = dead.end(syscall.SIGKILL); err != nil {
		return err
	}
	began := time.Now()
	err = within(ctx, crowdedWithin, check.Progress, "another leader than "+dead.Name, func() error {
		now, e := rest[0].Status(ctx)
		if e == nil && (now.Leader == "" || now.Leader == dead.Name) {
			e = fmt.Errorf("%s says %q in term %d", rest[0].Name, now.Leader, now.Term)
		}
		return e
	})
	if err != nil {
		return err
	}
	r.say("another leads %s after it died", time.Since(began).Round(time.Millisecond))
	leave()
	return r.launchAll(ctx)
}

// keepLeading sends a broker heartbeats of a leader until ctx ends, refused or not.
func keepLeading(ctx context.Context, layer *forgedLayer, leader string, term uint64) {
	trans := raft.NewNetworkTransport(layer, 1, time.Second, io.Discard)
	defer trans.Close()
	id, at := raft.ServerID(layer.to.Site), raft.ServerAddress(layer.to.Addr)
	beat := raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader),
			Addr: []byte(leader + "@127.0.0.1:1"),
		}, Term: term,
	}
	for sleep(ctx, beatEvery) == nil {
		var answer raft.AppendEntriesResponse
		_ = trans.AppendEntries(id, at, &beat, &answer)
	}
}

// hostile dials one broker from a host as a member, by its key: as one that has turned against the others, or whose
// key was stolen.
func hostile(from *netlab.Host, as *member, to relay.Peer, fed [16]byte) (*forgedLayer, error) {
	key, err := identity.Load(filepath.Join(as.Dir, "data", "key"))
	if err != nil {
		return nil, err
	}
	trust, err := truststore.Open(filepath.Join(as.Dir, "data", "roster"), nil)
	if err != nil {
		return nil, err
	}
	own, err := relay.NewIdentity(key, trust)
	if err != nil {
		return nil, err
	}
	return &forgedLayer{to: to, fed: fed, dialer: relay.Dialer{Site: as.Name, Net: &relay.Network{
		Identity: own,
		Dial:     func(ctx context.Context, addr string) (net.Conn, error) { return from.Dial(ctx, "tcp", addr) },
	}}}, nil
}
