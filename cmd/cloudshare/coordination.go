package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// The coordination backends, and the folders of their files inside the data
// directory.
const (
	onRaft      = "raft"
	onZooKeeper = "zookeeper"
	raftDir     = "raft"
	zkDir       = "zk"
	divergedDir = "diverged" // states of a broker that stopped because its own differs
)

// orderedLog is what a broker needs of its backend, beside the contract.
type orderedLog interface {
	coord.Log
	Federation() [16]byte
	Lineage() [16]byte
	Addr() string
}

// openCoordination opens the backend that the configuration names.
func openCoordination(ctx context.Context, cfg Config, id [16]byte, replica *node.Replica, seen *whereabouts, log zerolog.Logger) (orderedLog, error) {
	room := &waitingRoom{addr: cfg.HTTP, site: cfg.Site, log: log}
	defer room.close()
	if cfg.Bootstrap {
		if err := awaitOwnName(ctx, cfg.Advertise, room.say, log); err != nil {
			return nil, err
		}
	}
	if cfg.Coordination == onRaft {
		rc := raftConfig(cfg, id, replica, log)
		rc.Known, rc.Waiting = seen.peers, room.tell
		l, err := openLog(ctx, rc, probeAfter, log)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	place, err := cfg.zkPlace()
	if err != nil {
		return nil, err
	}
	zc := zkMember{zk.Config{
		Place: place, Site: cfg.Site, Node: id, Dir: filepath.Join(cfg.DataDir, zkDir), Listen: cfg.Peer, Advertise: cfg.advertised(cfg.Peer),
		Bootstrap: cfg.Bootstrap, Join: len(cfg.Join) > 0, Machine: replica, Logger: log,
		Evidence: filepath.Join(cfg.DataDir, divergedDir),
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

// zkSession is the session timeout asked for.
func (c Config) zkSession() time.Duration {
	if c.ZKSession == 0 {
		return zk.DefaultSession
	}
	return c.ZKSession
}

// zkPlace is where the tree is, with the credentials of the file.
func (c Config) zkPlace() (zk.Place, error) {
	p, err := zk.ParsePlace(c.ZK)
	if err != nil {
		return p, usage("zk: %w", err)
	}
	if p.User, p.Password, err = readDigest(c.ZKAuth); err != nil {
		return p, err
	}
	p.Session = c.zkSession()
	if p.TLS, err = c.zkTLS(); err != nil {
		return p, err
	}
	return p, nil
}

// readDigest reads the credentials, which nobody else may.
func readDigest(path string) (user, password string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", "", usage("zk_auth: %w: write one line USER:PASSWORD into a file that only you can read", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", "", usage("zk_auth %s: others can read or write it: chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", usage("zk_auth: %w", err)
	}
	user, password, found := strings.Cut(strings.TrimSpace(string(text)), ":")
	if !found || user == "" || password == "" || strings.ContainsAny(user+password, "\n\r") || len(text) > 1024 {
		return "", "", usage("zk_auth %s: must be one line USER:PASSWORD", path)
	}
	return user, password, nil
}

// zkTLS is nil for plain connections.
func (c Config) zkTLS() (*tls.Config, error) {
	if !c.ZKTLS {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ZKTLSCA != "" {
		text, err := os.ReadFile(c.ZKTLSCA)
		if err != nil {
			return nil, usage("zk_tls_ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, usage("zk_tls_ca %s: there is no certificate in it, in PEM form", c.ZKTLSCA)
		}
	}
	if c.ZKTLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.ZKTLSCert, c.ZKTLSKey)
		if err != nil {
			return nil, usage("zk_tls_cert, zk_tls_key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// checkCoordination touches nothing outside.
func (c Config) checkCoordination() error {
	given := c.ZK != "" || c.ZKAuth != "" || c.ZKTLS || c.ZKTLSCA != "" || c.ZKTLSCert != "" || c.ZKTLSKey != ""
	switch {
	case c.Coordination != onRaft && c.Coordination != onZooKeeper:
		return usage("coordination %q: must be raft or zookeeper", c.Coordination)
	case c.Coordination == onRaft && given:
		return usage("zk and zk_… are for --coordination zookeeper only")
	case c.Coordination == onRaft:
		return nil
	case c.ZK == "":
		return usage("zk is missing: name the ensemble and the federation's path in it, such as --zk zk1:2181,zk2:2181,zk3:2181/cloudshare")
	case c.ZKAuth == "":
		return usage("zk_auth is missing: name a file with one line USER:PASSWORD; the federation's tree is for its holders alone")
	case !c.ZKTLS && (c.ZKTLSCA != "" || c.ZKTLSCert != "" || c.ZKTLSKey != ""):
		return usage("zk_tls_ca, zk_tls_cert and zk_tls_key need --zk-tls")
	case (c.ZKTLSCert == "") != (c.ZKTLSKey == ""):
		return usage("zk_tls_cert and zk_tls_key belong together")
	case c.ZKSession < 0:
		return usage("zk_session %s: must not be negative", c.ZKSession)
	}
	place, err := zk.ParsePlace(c.ZK)
	if err != nil {
		return usage("zk: %w", err)
	}
	return checkDialed("zk", place.Servers)
}
