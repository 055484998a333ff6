package daemon

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/zk"
	"github.com/cloudshare/cloudshare/node/replica"
)

// orderedLog is what a broker needs of its backend besides the contract.
type orderedLog interface {
	coord.Log
	Federation() [16]byte
	Lineage() [16]byte
	Addr() string
}

// openCoordination opens the backend that the configuration names.
func openCoordination(ctx context.Context, cfg config.Config, id [16]byte, replica *replica.Replica, seen *whereabouts,
	log zerolog.Logger,
) (orderedLog, error) {
	room := &waitingRoom{addr: cfg.HTTP, site: cfg.Site, log: log}
	defer room.close()
	if cfg.Bootstrap {
		if err := awaitOwnName(ctx, cfg.Advertise, room.setReason, log); err != nil {
			return nil, err
		}
	}
	if cfg.Coordination == config.Raft {
		rc := raftlog.Config{
			Config: memberConfig(cfg, config.RaftDir, id, replica, log), Bootstrap: cfg.Bootstrap, Join: cfg.Join,
			Known: seen.peers, Waiting: room.setJoinError,
		}
		l, err := openLog(ctx, rc, probeAfter, log)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	place, err := cfg.ZKPlace()
	if err != nil {
		return nil, err
	}
	zc := zkMember{zk.Config{
		Config: memberConfig(cfg, config.ZKDir, id, replica, log), Place: place, Bootstrap: cfg.Bootstrap,
		Join: len(cfg.Join) > 0,
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
