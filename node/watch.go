package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// watchLoop runs the warden while this broker leads.
func (b *Broker) watchLoop() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-b.cfg.Hints.Changed():
		case <-b.ctx.Done():
			return
		}
		b.watch()
	}
}

func (b *Broker) watch() {
	b.watchFitness()
	st := b.cfg.Log.Status()
	if !st.IsLead {
		b.warden.lead(0)
		return
	}
	b.warden.lead(st.Term)
	if b.warden.waiting() {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		_, err := b.cfg.Log.Sync(ctx)
		cancel()
		if err != nil {
			return
		}
		b.warden.barrier(st.Term)
	}
	var sites []fsm.SiteView
	var params fsm.Params
	var raise raiseEvent
	b.cfg.Replica.View(func(s *fsm.State) {
		sites, params = s.Sites(), s.Params()
		if next := s.NextVersion(); next > s.Version() {
			raise.version = next
		}
	})
	if raise.version != 0 {
		b.cfg.Logger.Info().Uint32("version", raise.version).Msg("the brokers of all sites know a newer apply version: raising it")
		b.post(raise)
	}
	b.judge(b.warden.look(sites, timingOf(params, 0), b.cfg.Hints.Absent))
}

// waiting reports whether the term's barrier is still to come.
func (w *warden) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.term != 0 && w.since.IsZero()
}

// judge has verdicts ordered. Losses are tried once: the next look proposes
// again what did not come through.
func (b *Broker) judge(v verdicts) {
	if len(v.lost)+len(v.suspect)+len(v.trust) == 0 {
		return
	}
	for _, r := range v.say {
		b.cfg.Logger.Warn().Str("lost", r.Site).Uint64("incarnation", r.Incarnation).Msg("a site's lease ran out")
	}
	b.post(verdictEvent{v})
}

// verdictEvent: this broker leads and judges other sites.
type verdictEvent struct{ verdicts }

func (verdictEvent) isEvent() {}

// verdict proposes what the warden found, each once at a time. A broker that is not
// registered has no numbers for commands: it proposes nothing, and the leadership
// goes to another one (fitness.go).
func (c *core) verdict(v verdictEvent) {
	if c.incarnation == 0 {
		return
	}
	propose := func(r coord.Renewal, body fsm.Body) {
		if c.judging[r] {
			return
		}
		c.judging[r] = true
		c.out.add(body, func(fsm.Result, stateReader, *effects) { delete(c.judging, r) })
	}
	for _, r := range v.lost {
		propose(r, &fsm.SiteLost{Site: r.Site, Incarnation: r.Incarnation, Term: v.term})
	}
	for _, r := range v.suspect {
		propose(r, &fsm.Suspect{Site: r.Site, Incarnation: r.Incarnation, On: true})
	}
	for _, r := range v.trust {
		propose(r, &fsm.Suspect{Site: r.Site, Incarnation: r.Incarnation})
	}
}

// raiseEvent: this broker leads, and all sites know a newer apply version.
type raiseEvent struct{ version uint32 }

func (raiseEvent) isEvent() {}

// raise proposes an apply version, one at a time.
func (c *core) raise(ev raiseEvent) {
	if c.incarnation == 0 || c.raising {
		return
	}
	c.raising = true
	c.out.add(&fsm.Raise{Version: ev.version}, func(fsm.Result, stateReader, *effects) { c.raising = false })
}

// proposeLoss orders a SiteLost, which the log tries once, in its own term. If
// it did not come through, or nobody knows, the command's number is filled with
// one that does nothing: had the loss been executed, the repeat finds that out.
func (b *Broker) proposeLoss(cmd fsm.Command) {
	results, err := b.cfg.Log.Propose(b.ctx, cmd)
	if err != nil && b.ctx.Err() == nil {
		if !errors.Is(err, coord.ErrRefused) {
			b.cfg.Logger.Debug().Err(err).Msg("loss of a site not ordered")
		}
		cmd.Body = &fsm.Started{}
		if results, err = b.cfg.Log.Propose(b.ctx, cmd); err != nil && b.ctx.Err() == nil {
			b.fail(fmt.Errorf("fill the number of a site's loss: %w", err))
			return
		}
	}
	b.post(resultEvent{cmds: []fsm.Command{cmd}, results: results, err: err})
}

// Hints is what gossip tells the lead; hints rest offers and hurry a look, and
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
