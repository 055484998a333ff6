package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// watchLoop runs the lease tracker while this broker leads.
func (b *Broker) watchLoop() {
	tick := time.NewTicker(core.TickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-b.cfg.Hints.Changed():
		case <-b.ctx.Done():
			return
		}
		b.watchFitnessAndLeases()
	}
}

func (b *Broker) watchFitnessAndLeases() {
	b.watchFitness()
	st := b.cfg.Log.Status()
	if !st.IsLead {
		b.leases.setTerm(0)
		return
	}
	b.leases.setTerm(st.Term)
	if b.leases.waiting() {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		_, err := b.cfg.Log.Sync(ctx)
		cancel()
		if err != nil {
			return
		}
		b.leases.barrier(st.Term)
	}
	var sites []fsm.SiteView
	var params command.Params
	var raise core.RaiseEvent
	b.cfg.Replica.View(func(s *fsm.State) {
		sites, params = s.Sites(), s.Params()
		if next := s.NextVersion(); next > s.Version() {
			raise.Version = next
		}
	})
	if raise.Version != 0 {
		b.cfg.Logger.Info().Uint32("version", raise.Version).Msg("the brokers of all sites know a newer apply version: raising it")
		b.post(raise)
	}
	b.judge(b.leases.judgeSites(sites, node.TimingOf(params, 0), b.cfg.Hints.Absent))
}

// waiting reports whether the term's barrier is still to come.
func (w *leaseTracker) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.term != 0 && w.since.IsZero()
}

// judge has verdicts ordered. Losses are tried once: the next look proposes
// again what did not come through.
func (b *Broker) judge(v core.Verdicts) {
	if len(v.Lost)+len(v.Suspect)+len(v.Trust) == 0 {
		return
	}
	for _, r := range v.Say {
		b.cfg.Logger.Warn().Str("lost", r.Site).Uint64("incarnation", r.Incarnation).Msg("a site's lease ran out")
	}
	b.post(core.VerdictEvent{Verdicts: v})
}

// proposeLoss orders a SiteLost, which the log tries once, in its own term. If
// it did not come through, or nobody knows, the command's number is filled with
// one that does nothing: had the loss been executed, the repeat finds that out.
func (b *Broker) proposeLoss(cmd command.Command) {
	results, err := b.cfg.Log.Propose(b.ctx, cmd)
	if err != nil && b.ctx.Err() == nil {
		if !errors.Is(err, coord.ErrRefused) {
			b.cfg.Logger.Debug().Err(err).Msg("loss of a site not ordered")
		}
		cmd.Body = &command.Started{}
		if results, err = b.cfg.Log.Propose(b.ctx, cmd); err != nil && b.ctx.Err() == nil {
			b.fail(fmt.Errorf("fill the number of a site's loss: %w", err))
			return
		}
	}
	b.post(core.ResultEvent{Cmds: []command.Command{cmd}, Results: results, Err: err})
}

// Hints is what gossip tells the leader; hints rest offers and hurry a look, and
// never more.
type Hints interface {
	// Absent reports whether gossip does not see a site's broker now.
	Absent(site string) bool
	// Changed is signalled when an answer may have changed; nil never is.
	Changed() <-chan struct{}
}

// noHints is a federation without gossip.
type noHints struct{}

func (noHints) Absent(string) bool       { return false }
func (noHints) Changed() <-chan struct{} { return nil }
