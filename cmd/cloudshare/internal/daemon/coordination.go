package daemon

import (
	"context"
	"net"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/zk"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/node/replica"
)

// orderedLog is what a broker needs of its backend besides the contract.
type orderedLog interface {
	coord.Log
	Federation() [16]byte
	Lineage() [16]byte
	Addr() string
	// HTTP brings the connections of other sites' brokers, and DialHTTP opens one to theirs.
	HTTP() net.Listener
	DialHTTP(ctx context.Context, site, addr string) (net.Conn, error)
	// DialKeys opens a connection to the broker of another site that gives keys.
	DialKeys(ctx context.Context, site, addr string) (net.Conn, error)
	// DialFiles opens one to a broker that gives files.
	DialFiles(ctx context.Context, site, addr string) (net.Conn, error)
	// DialLogs opens one to a broker that gives what this site's tasks have written there.
	DialLogs(ctx context.Context, site, addr string) (net.Conn, error)
	// DialProgress opens one to a broker that tells what it does before this site's tasks start there.
	DialProgress(ctx context.Context, site, addr string) (net.Conn, error)
	// Reach returns nil if something takes connections at a peer address.
	Reach(ctx context.Context, addr string) error
}

// openCoordination founds or joins a federation, or goes on in the one that the data are of, by the backend that the
// configuration names.
func openCoordination(
	ctx context.Context,
	cfg config.Config,
	m *siteMember,
	replica *replica.Replica,
	seen *whereabouts,
	invited *invitation.Invitation,
	log zerolog.Logger,
) (l orderedLog, err error) {
	room := &waitingRoom{addr: cfg.HTTP, site: cfg.Site, log: log}
	defer room.close()
	if cfg.Bootstrap {
		if err = awaitOwnName(ctx, cfg.Advertise, room.setReason, log); err == nil {
			err = m.found()
		}
	} else {
		err = m.join(ctx, invited, room)
	}
	if err != nil {
		return nil, err
	}
	if cfg.Coordination == config.Raft {
		l, err = openRaft(ctx, cfg, m, replica, seen, room)
	} else {
		l, err = openZooKeeper(ctx, cfg, m, replica)
	}
	if err != nil {
		return nil, err
	}
	m.follow(l.Federation(), replica)
	return l, nil
}

func openRaft(ctx context.Context, cfg config.Config, m *siteMember, replica *replica.Replica, seen *whereabouts,
	room *waitingRoom,
) (orderedLog, error) {
	l, err := raftlog.Open(ctx, raftlog.Config{
		Config: memberConfig(cfg, config.RaftDir, m, replica), Bootstrap: cfg.Bootstrap, Join: m.through,
		Known: seen.peers, Waiting: room.setJoinError,
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func openZooKeeper(
	ctx context.Context,
	cfg config.Config,
	m *siteMember,
	replica *replica.Replica,
) (orderedLog, error) {
	place, err := cfg.ZKPlace()
	if err != nil {
		return nil, err
	}
	zc := zkMember{zk.Config{
		Config: memberConfig(cfg, config.ZKDir, m, replica), Place: place, Bootstrap: cfg.Bootstrap,
		Join: len(m.through) > 0,
	}}
	if err = zc.comesFrom(cfg.DataDir); err != nil {
		return nil, err
	}
	l, err := zk.Open(ctx, zc.Config)
	if err != nil {
		return nil, err
	}
	return l, nil
}
