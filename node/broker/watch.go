package broker

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/leases"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/replica"
)

// leaderWatch runs the lease tracker while this broker leads, and says when it should not.
type leaderWatch struct {
	*process
	site    string
	order   coord.Log
	replica *replica.Replica
	hints   Hints
	reach   func(ctx context.Context, addr string) error // nil: nobody is dialed
	leases  *leases.Tracker
	fitness fitness
	outside func() error
	keyed   uint64 // generation of the last key of gossip that was made here
}

// run runs the lease tracker while this broker leads.
func (x *leaderWatch) run() {
	tick := time.NewTicker(core.TickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-x.hints.Changed():
		case <-x.ctx.Done():
			return
		}
		x.watchFitnessAndLeases()
	}
}

func (x *leaderWatch) watchFitnessAndLeases() {
	x.watchFitness()
	st := x.order.Status()
	if !st.IsLead {
		x.leases.SetTerm(0)
		return
	}
	x.leases.SetTerm(st.Term)
	if x.leases.Waiting() {
		ctx, cancel := context.WithTimeout(x.ctx, time.Second)
		_, err := x.order.Sync(ctx)
		cancel()
		if err != nil {
			return
		}
		x.leases.Barrier(st.Term)
	}
	var sites []fsm.SiteView
	var params command.Params
	var raise core.RaiseEvent
	var generation uint64
	x.replica.View(func(s *fsm.State) {
		sites, params, generation = s.Sites(), s.Params(), s.NextGossip()
		if next := s.NextVersion(); next > s.Version() {
			raise.Version = next
		}
	})
	if raise.Version != 0 {
		x.log.Info().Uint32("version", raise.Version).Msg("the brokers of all sites know a newer apply version: raising it")
		x.post(raise)
	}
	if generation != 0 {
		x.makeGossipKey(st.Term, generation)
	}
	x.dialDoubted(sites)
	verdicts := x.leases.JudgeSites(sites, node.TimingOf(params, 0), x.hints.Word)
	judgeWrongly(x.site, sites, &verdicts)
	x.judge(verdicts)
}

// dialDoubted finds out which sites that may be gone can be reached.
func (x *leaderWatch) dialDoubted(sites []fsm.SiteView) {
	if x.reach == nil {
		return
	}
	for _, d := range x.leases.Dials(sites, x.site) {
		x.goroutine(func() {
			ctx, cancel := context.WithTimeout(x.ctx, leases.DialPatience)
			defer cancel()
			began := time.Now()
			x.leases.Dialed(d, began, x.reach(ctx, d.Addr))
		})
	}
}

// makeGossipKey has another key of gossip ordered. It is proposed again at each look until it is there.
func (x *leaderWatch) makeGossipKey(term, generation uint64) {
	if x.keyed != generation {
		x.log.Info().Uint64("generation", generation).Msg("gossip gets another key")
		x.keyed = generation
	}
	ev := core.GossipKeyEvent{Term: term, Generation: generation}
	_, _ = rand.Read(ev.Key[:]) // never fails
	x.post(ev)
}

// judge has verdicts ordered. Losses are tried once: the next look proposes
// again what did not come through.
func (x *leaderWatch) judge(v core.Verdicts) {
	if len(v.Lost)+len(v.Suspect)+len(v.Trust) == 0 {
		return
	}
	for _, r := range v.Gone {
		x.log.Info().Str("site", r.Site).Uint64("incarnation", r.Incarnation).
			Msg("a site's broker cannot be reached: it is suspected until it renews its lease")
	}
	for _, r := range v.Say {
		x.log.Warn().Str("lost", r.Site).Uint64("incarnation", r.Incarnation).Msg("a site's lease ran out")
	}
	x.post(core.VerdictEvent{Verdicts: v})
}

// watchFitness tells the log whether this broker should lead.
func (x *leaderWatch) watchFitness() {
	why := x.fitness.unfitReason(x.outside(), time.Now(), registerPatience(node.TimingOf(paramsOf(x.replica), 0)))
	if why == "" && !x.replica.MayVote(x.site) {
		why = "this site is no elector"
	}
	x.order.SetUnfit(why)
}

// Hints is what gossip tells the leader; hints have a site dialed and hurry a look, and
// never more.
type Hints interface {
	// Word returns what gossip says of a site; it is asked of each several times a second.
	Word(site string) leases.Word
	// Changed is signalled when an answer may have changed; nil never is.
	Changed() <-chan struct{}
}

// noHints is a federation without gossip.
type noHints struct{}

func (noHints) Word(string) leases.Word  { return leases.Nothing }
func (noHints) Changed() <-chan struct{} { return nil }
