// Package query answers what the API asks of a broker: lists, jobs, tasks, why one waits, the
// output of tasks, and the federation's figures. A [Reader] holds the copy of the state and
// what it asks beside it, the core on its own goroutine and the handlers; it changes nothing.
package query

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/estimate"
	"github.com/cloudshare/cloudshare/node/plausible"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Sources are what a reader reads.
type Sources struct {
	Site    string
	Replica *replica.Replica
	// Sealer opens what this site has submitted.
	Sealer   *seal.Sealer
	Log      coord.Log
	Handlers []executor.Handler
	// Home has what own tasks have written at other sites, nil = nothing comes home.
	Home HomeStore
	// Query runs f on the goroutine that owns the broker's core, and waits for it.
	Query    func(ctx context.Context, f func(*core.Core)) error
	Progress *StartProgress
	// DialProgress connects to a site's broker at its peer address by relay.KindProgress, and fails if anybody else
	// answers there; nil: no other site is asked what it does before own tasks start.
	DialProgress func(ctx context.Context, site, addr string) (net.Conn, error)
	// Delivery says what outputs that are on their way here wait for, by the attempt that left them; "" if that is not
	// known.
	Delivery func(ref command.AttemptRef) string
	// Leftover says at a log time why what is left at another site of a task that ended without success is not here, if
	// it is not.
	Leftover func(left *fsm.Delivery, nowMs int64) node.FilesAway
	// Estimates of starts.
	Estimates *estimate.Estimator
	// Plausible watches what sites report.
	Plausible *plausible.Watch
	// Ctx ends with the broker.
	Ctx context.Context //nolint:containedctx // the life of the broker
	// Current is closed once the state was rebuilt since the start.
	Current <-chan struct{}
	// Freshness says how old the state may be.
	Freshness func() node.Freshness
	// Full returns why no new job is taken, or nil.
	Full func() error
}

// HomeStore has what own tasks have written at other sites.
type HomeStore interface {
	// Find returns the full id of an attempt whose output is kept, as [executor.Finder].
	Find(job string, task, attempt uint32) (executor.ID, error)
	// FindNewest returns the newest attempt of a task whose output is kept.
	FindNewest(job string, task uint32) executor.Newest
	// Removed returns why an attempt's output was removed, as [executor.OutputHistory].
	Removed(job string, task, attempt uint32) (executor.OutputRemoval, bool)
	// Open opens a stream of an attempt.
	Open(id executor.ID, stream int) (io.ReadSeekCloser, error)
}

// Reader answers questions.
type Reader struct {
	site      string
	replica   *replica.Replica
	sealer    *seal.Sealer
	log       coord.Log
	handlers  []executor.Handler
	home      HomeStore
	query     func(context.Context, func(*core.Core)) error
	progress  *StartProgress
	far       *farProgress // nil: no other site is asked
	delivery  func(ref command.AttemptRef) string
	leftover  func(left *fsm.Delivery, nowMs int64) node.FilesAway
	estimates *estimate.Estimator
	plausible *plausible.Watch
	ctx       context.Context //nolint:containedctx // the life of the broker
	current   <-chan struct{}
	freshness func() node.Freshness
	full      func() error
}

// New returns the reader of a broker.
func New(s Sources) *Reader {
	rd := &Reader{
		site: s.Site, replica: s.Replica, sealer: s.Sealer, log: s.Log, handlers: s.Handlers, home: s.Home,
		query: s.Query, progress: s.Progress, delivery: s.Delivery,
		leftover:  s.Leftover,
		estimates: s.Estimates, plausible: s.Plausible,
		ctx: s.Ctx, current: s.Current, freshness: s.Freshness, full: s.Full,
	}
	if s.DialProgress != nil {
		rd.far = &farProgress{dial: s.DialProgress, address: s.Replica.PeerAddress, now: time.Now}
	}
	return rd
}

// Current returns nil once this broker's state is as new as the federation's, else an
// error that says what it waits for. After a start the state is rebuilt when a leader is
// found; until then "not found" in it means nothing.
func (rd *Reader) Current() error {
	select {
	case <-rd.current:
		return nil
	default:
	}
	return fmt.Errorf("%w: no quorum was found since this broker started, so it does not know the federation's state yet", node.ErrNotReady)
}

// missing returns the error for what is found neither here nor in the state.
func (rd *Reader) missing(what string) error {
	if err := rd.Current(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, node.ErrNotFound)
}

// missingJob is missing for a job: one that has ended may not be kept any more.
func (rd *Reader) missingJob(id command.JobID) error {
	retired := false
	rd.replica.View(func(s *fsm.State) { retired = s.Retired(id) })
	if retired && rd.Current() == nil {
		return fmt.Errorf("job %s has ended and is no longer kept; cloudshare report sums up what is archived: %w", id, node.ErrNotFound)
	}
	return rd.missing("job " + id.String())
}

// Elsewhere names the broker that can answer for a site.
func (rd *Reader) Elsewhere(site, role string) error {
	e := &node.ElsewhereError{Site: site, Role: role}
	known := false
	rd.replica.View(func(s *fsm.State) {
		if v, ok := s.Site(site); ok {
			known, e.Peer = true, v.Peer
		}
	})
	if !known {
		return rd.missing("no site " + site)
	}
	return e
}

// Params returns the federation's parameters.
func (rd *Reader) Params() (p command.Params) {
	rd.replica.View(func(s *fsm.State) { p = s.Params() })
	return p
}

// Queue returns what waits, per owner, with the priorities now.
func (rd *Reader) Queue() (q []fsm.QueueView) {
	rd.replica.View(func(s *fsm.State) { q = s.Queue() })
	return q
}

// Ledger returns contributions, utilities and priorities.
func (rd *Reader) Ledger() fsm.LedgerView {
	var f *fsm.FrozenLedger
	rd.replica.View(func(s *fsm.State) { f = s.FreezeLedger() })
	return f.View()
}

// Index returns the number of the last entry applied here.
func (rd *Reader) Index() uint64 { return rd.replica.Index() }

// Site returns this broker's own.
func (rd *Reader) Site() string { return rd.site }

// Calibration tells how this broker's latest estimates came out.
func (rd *Reader) Calibration() node.Calibration { return rd.estimates.Calibration() }

// Plausibility tells what stands out of what sites report and nobody can prove.
func (rd *Reader) Plausibility() node.Plausibility { return rd.plausible.View() }
