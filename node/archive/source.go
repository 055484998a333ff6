package archive

import (
	"context"
	"maps"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Source is the broker that a Collector reads.
type Source interface {
	Site() string
	// Ready is nil once the broker's state is current.
	Ready() error
	// Subscribe reads events after a place.
	Subscribe(from node.EventID) Reader
	// HomeNumbers are the number after which the home events of this start of the
	// broker begin, and the newest one's.
	HomeNumbers() (first, newest uint64)
	// JobFacts leaves out the jobs that nobody knows any more.
	JobFacts(ctx context.Context, ids []command.JobID) map[command.JobID]node.JobFacts
	Ledger() fsm.LedgerView
}

// Reader is a replica.Subscription.
type Reader interface {
	Next(ctx context.Context) ([]node.Event, error)
	Place() node.EventID
}

var _ Reader = (*replica.Subscription)(nil)

// Broker is what a Source is made of; a *broker.Broker is one.
type Broker interface {
	Site() string
	Ready() error
	JobFacts(ctx context.Context, ids []command.JobID) map[command.JobID]node.JobFacts
	Ledger() fsm.LedgerView
	Events(from node.EventID, filter node.EventFilter) *replica.Subscription
	Feed() *replica.Feed
}

// Of returns a broker as a Source.
func Of(b Broker) Source { return brokerSource{b} }

type brokerSource struct{ Broker }

// Subscribe implements Source.
func (b brokerSource) Subscribe(from node.EventID) Reader {
	return b.Events(from, node.EventFilter{Kinds: told})
}

// HomeNumbers implements Source.
func (b brokerSource) HomeNumbers() (first, newest uint64) { return b.Feed().HomeNumbers() }

// told are the kinds that a Collector reads.
var told = map[fsm.EventKind]bool{
	fsm.EventJobSubmitted: true, fsm.EventTaskAssigned: true, fsm.EventTaskStarted: true, fsm.EventTaskRequeued: true,
	fsm.EventTaskHeld: true, fsm.EventTaskEnded: true, fsm.EventHomeRan: true, fsm.EventJobEnded: true,
}

// maxJobs bounds the jobs that are remembered.
const maxJobs = 10_000

// jobBook remembers jobs, so that each is asked for once.
type jobBook struct {
	source Source
	known  map[command.JobID]node.JobFacts
}

// learn asks for the attempts' jobs that are not known yet.
func (b *jobBook) learn(ctx context.Context, attempts []Attempt) {
	var ids []command.JobID
	asked := map[command.JobID]bool{}
	for i := range attempts {
		id := attempts[i].Job
		if _, ok := b.known[id]; !ok && !asked[id] {
			asked[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	if len(b.known)+len(ids) > maxJobs {
		clear(b.known)
		for i := range attempts { // also those that were known
			if id := attempts[i].Job; !asked[id] {
				asked[id] = true
				ids = append(ids, id)
			}
		}
	}
	maps.Copy(b.known, b.source.JobFacts(ctx, ids))
}
