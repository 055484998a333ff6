package broker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/delivery"
	"github.com/cloudshare/cloudshare/node/broker/jobinputs"
	"github.com/cloudshare/cloudshare/node/broker/leftover"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/node/seal"
)

// ownFiles are the files of this site's own jobs: what they bring along, and what they have left.
type ownFiles struct {
	*process
	b        *Broker
	sealer   *seal.Sealer
	store    *store.Store
	inputs   *jobinputs.Book
	results  *results.Book
	delivery *delivery.Loop
	leftover *leftover.Fetcher
	sent     atomic.Int64  // bytes, to other sites
	loaded   chan struct{} // closed once all that is to stay is pinned

	// outgoing answers for what this site keeps of others' jobs.
	outgoing func(ctx context.Context, from string, q transfer.Request) (transfer.Source, transfer.Refusal)
}

// newOwnFiles returns the broker's, nil if it keeps no files.
func newOwnFiles(b *Broker, sealer *seal.Sealer) (k *ownFiles, err error) {
	cfg := &b.cfg
	if cfg.Files == nil {
		return nil, nil //nolint:nilnil // a broker without files has none
	}
	k = &ownFiles{
		process: b.process, b: b, sealer: sealer, store: cfg.Files, inputs: jobinputs.NewBook(cfg.Files),
		loaded: make(chan struct{}), outgoing: b.files.outgoing.Answer,
	}
	if k.results, err = results.Open(results.Options{
		Journal: cfg.Journal, Store: cfg.Files, UserOf: b.UserOf, Now: time.Now,
	}); err != nil {
		return nil, err
	}
	k.delivery = delivery.New(delivery.Config{
		Store: cfg.Files, Results: k.results, State: deliveryState{cfg.Site, cfg.Replica}, Transfers: b.moved,
		WantedOf: k.wanted, Say: k.say, Full: func(int64) error { return b.disk.Full() }, Wait: cfg.Data.DeliverWait,
		Pins: "deliver", Pace: delivery.Prompt, Logger: cfg.Logger,
	})
	k.bringLeftovers()
	return k, nil
}

// start runs what looks after the files until the broker ends.
func (k *ownFiles) start() {
	if k == nil {
		return
	}
	k.goroutine(func() {
		if !k.load() {
			return
		}
		k.goroutine(func() { k.delivery.Run(k.ctx) })
		k.goroutine(func() { k.leftover.Run(k.ctx) })
		k.sweepLoop()
	})
}

// KeepResult keeps what a task of this site's own job has left here, in the store. It is durable when it returns. What
// does not count is not kept: another attempt may have ended while this one's files were copied.
func (b *Broker) KeepResult(num uint64, r node.TaskResult) error {
	switch {
	case b.owned == nil:
		return node.ErrNoFiles
	case b.owned.overtaken(num, &r):
		return nil
	}
	return b.owned.results.Keep(num, r)
}

// overtaken reports whether, by the state, another attempt of a task counts.
func (k *ownFiles) overtaken(num uint64, r *node.TaskResult) (yes bool) {
	k.b.cfg.Replica.View(func(s *fsm.State) {
		tasks, _ := s.Tasks(command.JobID{Site: k.b.cfg.Site, Num: num}, r.Task, 1)
		if len(tasks) == 0 || tasks[0].Index != r.Task {
			return
		}
		v := &tasks[0]
		yes = (v.Delivering || v.State.Ended()) && v.Attempt > 0 && v.Attempt != r.Attempt
	})
	return yes
}

// wanted says what the job of an attempt, which is this site's, wants of its outputs.
func (k *ownFiles) wanted(ref command.AttemptRef) (delivery.Wanted, error) {
	id := ref.Job
	var js command.JobSpec
	known := false
	k.b.cfg.Replica.View(func(s *fsm.State) {
		var v fsm.JobView
		v, known = s.Job(id)
		js = v.Spec
	})
	if !known {
		return delivery.Wanted{}, fmt.Errorf("job %s: %w", id, node.ErrNotFound)
	}
	spec, err := jobspec.SpecOf(js, k.sealer)
	return delivery.Wanted{User: k.b.UserOf(id.Num), Outputs: spec.Outputs}, err
}

// deliveryState is the state as the delivery of outputs sees it.
type deliveryState struct {
	site    string
	replica *replica.Replica
}

var _ delivery.State = deliveryState{}

// Since implements delivery.State.
func (d deliveryState) Since(entry uint64) (changed []fsm.Delivery, whole bool, now uint64) {
	d.replica.View(func(s *fsm.State) {
		changed, whole = s.DeliveriesSince(d.site, entry)
		now = s.Index()
	})
	return changed, whole, now
}

// Await implements delivery.State. A state that was replaced by an earlier one has changed.
func (d deliveryState) Await(ctx context.Context, entry uint64) error {
	return d.replica.Await(ctx, func(s *fsm.State) bool {
		return s.DeliveryChange(d.site) > entry || s.Index() < entry
	})
}

// Now implements delivery.State.
func (d deliveryState) Now() int64 { return d.replica.Time() }

// Where implements delivery.State.
func (d deliveryState) Where(site string) (addr string, entry uint64) {
	return d.replica.PeerAddress(site), d.replica.Index()
}

// deliveryWhy says what the outputs of an attempt wait for that are on their way here, "" if nothing is known.
func (b *Broker) deliveryWhy(ref command.AttemptRef) string {
	if b.owned == nil {
		return ""
	}
	return b.owned.delivery.Why(ref)
}
