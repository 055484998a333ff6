package daemon

import (
	"context"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
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
func openCoordination(ctx context.Context, cfg config.Config, id [16]byte, replica *replica.Replica, seen *whereabouts, log zerolog.Logger) (orderedLog, error) {
	room := &waitingRoom{addr: cfg.HTTP, site: cfg.Site, log: log}
	defer room.close()
	if cfg.Bootstrap {
		if err := awaitOwnName(ctx, cfg.Advertise, room.setReason, log); err != nil {
			return nil, err
		}
	}
	if cfg.Coordination == config.Raft {
		rc := raftConfig(cfg, id, replica, log)
		rc.Known, rc.Waiting = seen.peers, room.setJoinError
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
		Config: facade.Config{
			Site: cfg.Site, Node: id, Dir: filepath.Join(cfg.DataDir, config.ZKDir), Listen: cfg.Peer, Advertise: cfg.Advertised(cfg.Peer),
			Machine: replica, Logger: log, Evidence: filepath.Join(cfg.DataDir, config.DivergedDir),
		},
		Place: place, Bootstrap: cfg.Bootstrap, Join: len(cfg.Join) > 0,
	}}
	if cfg.Profile == "wan" {
		zc.Profile = zk.WAN
	}
	if cfg.Bootstrap {
		zc.Federation = uuid.New()
	}
	if err = zc.comesFrom(cfg.DataDir); err != nil {
		return nil, err
	}
	l, err := zk.Open(ctx, zc.Config)
	if err != nil {
		return nil, err
	}
	return l, nil
}
