package coordtest

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// BareRaft is hashicorp/raft with nothing around it: the limit that benchmarks
// of raftlog stand beside. Members run in this process over loopback, on the
// same kind of stores, with the library's defaults.
type BareRaft struct {
	members []bareMember
	lead    *raft.Raft
}

type bareMember struct {
	raft  *raft.Raft
	trans *raft.NetworkTransport
	bolt  *raftboltdb.BoltStore
}

// OpenBareRaft starts n voters below dir and waits for a leader.
func OpenBareRaft(dir string, n int) (*BareRaft, error) {
	b := &BareRaft{}
	var group raft.Configuration
	for i := range n {
		m, err := openBare(filepath.Join(dir, fmt.Sprint("bare-", i)))
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.members = append(b.members, m)
		group.Servers = append(group.Servers, raft.Server{
			ID:      raft.ServerID(fmt.Sprint(i)),
			Address: m.trans.LocalAddr(),
		})
	}
	for i := range b.members {
		m := &b.members[i]
		c := raft.DefaultConfig()
		c.LocalID, c.Logger = group.Servers[i].ID, hclog.NewNullLogger()
		snaps := raft.NewInmemSnapshotStore()
		err := raft.BootstrapCluster(c, m.bolt, m.bolt, snaps, m.trans, group)
		if err == nil {
			m.raft, err = raft.NewRaft(c, ignore{}, m.bolt, m.bolt, snaps, m.trans)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start bare raft: %w", err), b.Close())
		}
	}
	return b, b.await()
}

func openBare(path string) (bareMember, error) {
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
	})
	if err != nil {
		return bareMember{}, fmt.Errorf("open bare store: %w", err)
	}
	trans, err := raft.NewTCPTransportWithLogger("127.0.0.1:0", nil, 3, 5*time.Second, hclog.NewNullLogger())
	if err != nil {
		return bareMember{}, errors.Join(fmt.Errorf("listen: %w", err), bolt.Close())
	}
	return bareMember{trans: trans, bolt: bolt}, nil
}

func (b *BareRaft) await() error {
	for end := time.After(Patience); ; {
		for _, m := range b.members {
			if m.raft.VerifyLeader().Error() == nil {
				b.lead = m.raft
				return nil
			}
		}
		select {
		case <-end:
			return errors.Join(errors.New("bare raft found no leader"), b.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Apply has data committed by the quorum and applied at the leader.
func (b *BareRaft) Apply(data []byte) error {
	if err := b.lead.Apply(data, Patience).Error(); err != nil {
		return fmt.Errorf("bare apply: %w", err)
	}
	return nil
}

// Close stops all members.
func (b *BareRaft) Close() error {
	var errs []error
	for _, m := range b.members {
		if m.raft != nil {
			errs = append(errs, m.raft.Shutdown().Error())
		}
		errs = append(errs, m.trans.Close())
		m.trans.CloseStreams()
		errs = append(errs, m.bolt.Close())
	}
	return errors.Join(errs...)
}

// ignore is a raft.FSM that does nothing.
type ignore struct{}

var _ raft.FSM = ignore{}

// Apply implements raft.FSM.
func (ignore) Apply(*raft.Log) any { return nil }

// Snapshot implements raft.FSM.
func (ignore) Snapshot() (raft.FSMSnapshot, error) { return ignore{}, nil }

// Restore implements raft.FSM.
func (ignore) Restore(r io.ReadCloser) error { return r.Close() }

// Persist implements raft.FSMSnapshot.
func (ignore) Persist(s raft.SnapshotSink) error { return s.Close() }

// Release implements raft.FSMSnapshot.
func (ignore) Release() {}
