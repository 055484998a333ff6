package transport

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

var errStore = errors.New("the disk fails")

// badStore keeps a log, and fails while it is told to.
type badStore struct {
	*raft.InmemStore
	bad atomic.Bool
}

// StoreLogs implements raft.LogStore.
func (s *badStore) StoreLogs(logs []*raft.Log) error {
	if s.bad.Load() {
		return errStore
	}
	return s.InmemStore.StoreLogs(logs)
}

// list is a state machine: the list of what was applied.
type list struct {
	mu  sync.Mutex
	all []string
}

// Apply implements raft.FSM.
func (l *list) Apply(e *raft.Log) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(e.Data))
	return nil
}

func (l *list) applied() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Snapshot implements raft.FSM.
func (l *list) Snapshot() (raft.FSMSnapshot, error) { return listSnapshot(l.applied()), nil }

// Restore implements raft.FSM.
func (l *list) Restore(r io.ReadCloser) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
	return errors.Join(json.NewDecoder(r).Decode(&l.all), r.Close())
}

type listSnapshot []string

// Persist implements raft.FSMSnapshot.
func (l listSnapshot) Persist(sink raft.SnapshotSink) error {
	return errors.Join(json.NewEncoder(sink).Encode([]string(l)), sink.Close())
}

// Release implements raft.FSMSnapshot.
func (listSnapshot) Release() {}

// rafts is a group of raft members in one process, each over a transport of ours.
type rafts struct {
	*members
	t     *testing.T
	mu    sync.Mutex
	nodes map[string]*node
}

type node struct {
	*raft.Raft
	trans *Transport
	store *badStore
	snaps raft.SnapshotStore
	state *list
}

// openRafts starts members; all vote but those whose name begins with "no-".
func openRafts(t *testing.T, m *members, sites ...string) *rafts {
	r := &rafts{members: m, t: t, nodes: map[string]*node{}}
	var all []raft.Server
	for _, s := range sites {
		suffrage := raft.Voter
		if strings.HasPrefix(s, "no-") {
			suffrage = raft.Nonvoter
		}
		all = append(all, raft.Server{Suffrage: suffrage, ID: raft.ServerID(s), Address: ServerAddress(s, "h:1")})
	}
	for _, s := range sites {
		r.nodes[s] = &node{store: &badStore{InmemStore: raft.NewInmemStore()}, snaps: raft.NewInmemSnapshotStore()}
		r.start(s, all)
	}
	return r
}

// start runs a member on what it has kept, and founds the group where that is nothing.
func (r *rafts) start(site string, found []raft.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[site]
	n.state, n.trans = &list{}, r.open(r.t, site, 5*time.Second)
	c := raft.DefaultConfig()
	c.LocalID, c.Logger, c.CommitTimeout = raft.ServerID(site), hclog.NewNullLogger(), 200*time.Millisecond
	c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = 100, 20, 2*time.Second
	if len(found) > 0 {
		if err := raft.BootstrapCluster(c, n.store, n.store, n.snaps, n.trans,
			raft.Configuration{Servers: found}); err != nil {
			r.t.Fatal(err)
		}
	}
	var err error
	machine := &telling{list: n.state, trans: n.trans}
	if n.Raft, err = raft.NewRaft(c, machine, n.store, n.store, n.snaps, n.trans); err != nil {
		r.t.Fatal(err)
	}
	machine.raft.Store(n.Raft)
	n.trans.Attach(n.Raft)
}

// telling tells the transport of commits, as the log does.
type telling struct {
	*list
	trans *Transport
	raft  atomic.Pointer[raft.Raft]
}

// Apply implements raft.FSM.
func (f *telling) Apply(e *raft.Log) any {
	out := f.list.Apply(e)
	if r := f.raft.Load(); r != nil && r.State() == raft.Leader && r.CurrentTerm() == e.Term {
		f.trans.Committed(e)
	}
	return out
}

func (r *rafts) node(site string) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := *r.nodes[site]
	return &n
}

// stop ends a member; what it has stored stays.
func (r *rafts) stop(site string) {
	n := r.node(site)
	if err := n.Shutdown().Error(); err != nil {
		r.t.Error(err)
	}
	_ = n.trans.Close()
	r.cut(site)
	n.trans.Wait()
}

func (r *rafts) stopAll() {
	for s := range r.nodes {
		r.stop(s)
	}
	r.wg.Wait()
}

// leader waits for one.
func (r *rafts) leader() (string, *node) {
	for {
		for s := range r.nodes {
			if n := r.node(s); n.State() == raft.Leader {
				return s, n
			}
		}
		<-time.After(50 * time.Millisecond)
	}
}

// propose has entries ordered by whoever leads until stop is closed, so many at a time; each is an entry of its own.
// done returns those of which the leader said that they are committed.
func (r *rafts) propose(at int, stop chan struct{}) (done func() []string) {
	var mu sync.Mutex
	var acked []string
	var next atomic.Int64
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, lead := r.leader()
				what := strconv.FormatInt(next.Add(1), 10)
				if lead.Apply([]byte(what), time.Second).Error() != nil {
					<-time.After(20 * time.Millisecond)
					continue
				}
				mu.Lock()
				acked = append(acked, what)
				mu.Unlock()
				<-time.After(10 * time.Millisecond)
			}
		})
	}
	return func() []string {
		wg.Wait()
		return acked
	}
}
