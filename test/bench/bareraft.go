package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// bareRaft is the limit of everything that is ordered: three hashicorp/raft
// nodes with the broker's kind of stores and transport, and a state machine
// that does nothing. All three live in this process, which favours it.
type bareRaft struct {
	nodes  []*raft.Raft
	stores []*raftboltdb.BoltStore
	lead   *raft.Raft
}

// applyLimit bounds one bare commit and the first election.
const applyLimit = 10 * time.Second

func openBareRaft(ctx context.Context, env environment, name string) (*bareRaft, error) {
	b := &bareRaft{}
	var servers []raft.Server
	var transports []*raft.NetworkTransport
	for i := range siteCount {
		tr, err := raft.NewTCPTransportWithConfig("127.0.0.1:0", nil, &raft.NetworkTransportConfig{
			MaxPool: 3, Timeout: applyLimit, MaxRPCsInFlight: 1, Logger: hclog.NewNullLogger(),
		})
		if err != nil {
			return nil, fmt.Errorf("open bare raft transport: %w", err)
		}
		transports = append(transports, tr)
		servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprint(i)), Address: tr.LocalAddr()})
	}
	for i, tr := range transports {
		if err := b.addNode(filepath.Join(env.dir, name, fmt.Sprint(i)), servers, i, tr); err != nil {
			b.close()
			return nil, err
		}
	}
	if err := b.awaitLead(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bareRaft) addNode(dir string, servers []raft.Server, i int, tr raft.Transport) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make bare raft folder: %w", err)
	}
	store, err := raftboltdb.New(raftboltdb.Options{
		Path:        filepath.Join(dir, "raft.db"),
		BoltOptions: &bbolt.Options{NoFreelistSync: true},
	})
	if err != nil {
		return fmt.Errorf("open bare raft store: %w", err)
	}
	b.stores = append(b.stores, store)
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = servers[i].ID, hclog.NewNullLogger()
	snaps := raft.NewInmemSnapshotStore()
	err = raft.BootstrapCluster(conf, store, store, snaps, tr, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("bootstrap bare raft: %w", err)
	}
	cache, err := raft.NewLogCache(512, store)
	if err != nil {
		return fmt.Errorf("cache bare raft log: %w", err)
	}
	node, err := raft.NewRaft(conf, nothing{}, cache, store, snaps, tr)
	if err != nil {
		return fmt.Errorf("start bare raft: %w", err)
	}
	b.nodes = append(b.nodes, node)
	return nil
}

// awaitLead waits until one node leads.
func (b *bareRaft) awaitLead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	leads := make(chan *raft.Raft)
	for _, n := range b.nodes {
		go func() {
			for {
				select {
				case is := <-n.LeaderCh():
					if !is {
						continue
					}
					select {
					case leads <- n:
					case <-ctx.Done():
					}
					return
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	select {
	case b.lead = <-leads:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("bare raft elected no leader: %w", context.Cause(ctx))
	}
}

// apply has one entry committed and applied at the leader.
func (b *bareRaft) apply(entry []byte) error {
	if err := b.lead.Apply(entry, applyLimit).Error(); err != nil {
		return fmt.Errorf("apply to bare raft: %w", err)
	}
	return nil
}

func (b *bareRaft) close() {
	for _, n := range b.nodes {
		_ = n.Shutdown().Error() // what was measured has been measured
	}
	for _, s := range b.stores {
		_ = s.Close() // likewise
	}
}

// measureBareRaft returns committed entries a second per number of clients.
func measureBareRaft(ctx context.Context, env environment) ([]float64, error) {
	b, err := openBareRaft(ctx, env, "bare-submissions")
	if err != nil {
		return nil, err
	}
	defer b.close()
	entry := make([]byte, entryBytes)
	var rates []float64
	for _, n := range clientCounts {
		rate, err := countInWindow(ctx, n, window, func(int) (int, error) { return 1, b.apply(entry) })
		if err != nil {
			return nil, err
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

// nothing is a state machine without a state.
type nothing struct{}

var _ raft.FSM = nothing{}

func (nothing) Apply(*raft.Log) any                 { return nil }
func (nothing) Snapshot() (raft.FSMSnapshot, error) { return nothing{}, nil }
func (nothing) Restore(r io.ReadCloser) error       { return r.Close() }
func (nothing) Persist(s raft.SnapshotSink) error   { return s.Close() }
func (nothing) Release()                            {}
