package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/replica"
)

// ErrOldEpoch means that this site has been in a later epoch of the federation than the log
// that it was started on. Somebody names a backend, or a copy of its data, that
// the federation has left.
var ErrOldEpoch = errors.New("the federation has left this log")

// registrar founds the federation if nobody has, and presents this broker to it: at its
// start, and again when it was declared lost.
type registrar struct {
	*process
	cfg       *Config
	order     coord.Log
	contact   *contact
	epoch     atomic.Uint64 // of the state that this site is ready for, or gets ready for
	addresses Addresses     // set by Start
	renewNow  chan struct{} // capacity 1

	regMu      sync.Mutex
	registered uint64        // incarnation, 0 = not yet
	current    chan struct{} // closed once registered since the start
}

func newRegistrar(p *process, cfg *Config, c *contact) *registrar {
	return &registrar{
		process: p, cfg: cfg, order: cfg.Log, contact: c,
		renewNow: make(chan struct{}, 1), current: make(chan struct{}),
	}
}

// maxOvertaken is how many registrations of processes before this one, which were on their way when they ended, may
// be executed before this one's.
const maxOvertaken = 3

// register founds the federation if nobody has, and presents this broker. The
// log retries inside, so it returns early only when the broker stops.
func (g *registrar) register(held, lost []command.AttemptRef) {
	g.setIncarnation(0)
	if err := g.found(); err != nil {
		g.endUnless(fmt.Errorf("found the federation: %w", err))
		return
	}
	if g.newEpoch() {
		return
	}
	if err := node.TimingOf(paramsOf(g.cfg.Replica), g.cfg.KillGrace).Validate(); err != nil {
		g.fail(fmt.Errorf("the federation's timing and this site's do not fit: %w", err))
		return
	}
	boot := uuid.New()
	result, ok := g.present(boot, held, lost)
	for tries := 0; ok && g.mayTryAgain(result.Code, tries); tries++ {
		boot = uuid.New() // a repeat would be answered as before
		result, ok = g.present(boot, held, lost)
	}
	if !ok {
		return
	}
	if result.Code != command.OK {
		g.fail(errors.New(cmp.Or(g.byState(), fmt.Sprintf("register site %s: refused: %s", g.cfg.Site, result.Code))))
		return
	}
	g.post(core.RegisteredEvent{Result: result, Boot: boot})
	g.setIncarnation(result.Incarnation)
	if g.cfg.Registered != nil {
		g.cfg.Registered(result.Incarnation)
	}
	select {
	case g.renewNow <- struct{}{}:
	default:
	}
	g.log.Info().Uint64("incarnation", result.Incarnation).Msg("registered with the federation")
}

// mayTryAgain reports whether to register once more, after so many tries: when the electors, who have expelled this
// site, have let it in again, or at once, if a registration of an earlier process was executed before this one's.
func (g *registrar) mayTryAgain(code command.Code, tries int) bool {
	switch {
	case code == command.Banned: // it is over for whoever ends, and not for the electors
		g.log.Warn().Str("reason", g.byState()).Msg("its registration is refused: the electors have expelled this site; its broker waits " +
			"until they let it in again")
		return g.cfg.Replica.Await(g.ctx, g.letIn) == nil
	case code == command.OldIncarnation && tries < maxOvertaken:
		err := g.catchUp()
		if err != nil {
			g.endUnless(err)
		}
		return err == nil
	}
	return false
}

// letIn reports whether the electors have not expelled this site, or not any more.
func (g *registrar) letIn(s *fsm.State) bool {
	m, known := s.Member(g.cfg.Site)
	return !known || !m.Banned
}

// present has the broker's registration ordered, as a boot; false: the broker ends.
func (g *registrar) present(boot [16]byte, held, lost []command.AttemptRef) (r command.Result, ok bool) {
	known, err := g.cfg.Journal.Boot(boot)
	if err != nil {
		g.endUnless(err)
		return r, false
	}
	_, after := g.cfg.Replica.SiteState(g.cfg.Site)
	cmd := command.Command{ID: command.ID{Site: g.cfg.Site}, Body: &command.Register{
		Node: g.cfg.Node, Boot: boot, Known: known, HTTP: g.addresses.HTTP, Peer: g.addresses.Peer,
		Gossip:     g.addresses.Gossip,
		MaxVersion: fsm.Version, After: after, Held: held, Lost: lost,
	}}
	results, err := g.order.Propose(g.ctx, cmd)
	if err != nil {
		g.endUnless(fmt.Errorf("register site %s: %w", g.cfg.Site, err))
		return r, false
	}
	return results[0], true
}

func (g *registrar) setIncarnation(n uint64) {
	g.regMu.Lock()
	defer g.regMu.Unlock()
	g.registered = n
	if n > 0 && !g.isCurrent() {
		close(g.current)
	}
}

// incarnation returns 0 while this broker is not registered.
func (g *registrar) incarnation() uint64 {
	g.regMu.Lock()
	defer g.regMu.Unlock()
	return g.registered
}

// found proposes Genesis if a current look at the state shows none.
func (g *registrar) found() error {
	if err := g.catchUp(); err != nil || g.founded() {
		return err
	}
	cmd := command.Command{ID: command.ID{Site: g.cfg.Site}, Body: &g.cfg.Genesis}
	_, err := g.order.Propose(g.ctx, cmd)
	return err
}

// catchUp reads the state as it is now, however long it takes to find a leader.
func (g *registrar) catchUp() error {
	for {
		sent := executor.Boottime()
		_, err := g.order.Sync(g.ctx)
		if err == nil {
			g.contact.confirm(sent)
			return nil
		}
		if g.ctx.Err() != nil {
			return err
		}
		g.log.Debug().Err(err).Msg("the federation does not answer yet")
		select {
		case <-time.After(core.TickEvery):
		case <-g.order.Failed():
			return g.order.Err()
		case <-g.ctx.Done():
			return context.Cause(g.ctx)
		}
	}
}

func (g *registrar) founded() (yes bool) {
	g.cfg.Replica.View(func(s *fsm.State) { yes = s.Federation() != [16]byte{} })
	return yes
}

// isCurrent reports whether the broker was registered since its start.
func (g *registrar) isCurrent() bool {
	select {
	case <-g.current:
		return true
	default:
		return false
	}
}

// outside returns why this broker takes no part in the federation now, or nil: it
// is registered, and the state has not given its incarnation up since.
func (g *registrar) outside() error {
	registered := g.incarnation()
	if registered == 0 {
		return fmt.Errorf("not registered with the federation yet: %w", node.ErrNotReady)
	}
	state, incarnation := g.cfg.Replica.SiteState(g.cfg.Site)
	switch {
	case incarnation != registered:
		return fmt.Errorf("another broker of site %s has registered since: %w", g.cfg.Site, node.ErrNotReady)
	case state == fsm.SiteGone:
		return fmt.Errorf("site %s was declared lost, and ends what it runs for others before it registers again: %w", g.cfg.Site, node.ErrNotReady)
	case state == fsm.Left:
		return fmt.Errorf("site %s has left the federation: %w", g.cfg.Site, node.ErrNotReady)
	}
	return nil
}

// newEpoch reports whether the site must settle with a new epoch before it
// registers: it is presented again when it has. In an old one it is not at all. REQUIRES: the state is current.
func (g *registrar) newEpoch() bool {
	var epoch uint64
	g.cfg.Replica.View(func(s *fsm.State) { epoch = s.Epoch() })
	switch was := g.epoch.Swap(epoch); {
	case was == epoch:
		return false
	case was > epoch:
		g.fail(fmt.Errorf("%w: it is of epoch %d, and this site was in epoch %d: start it with the configuration and the data that it had there", ErrOldEpoch, epoch, was))
		return true
	}
	g.log.Info().Uint64("epoch", epoch).Msg("the federation was recovered since this site was last here, or the site is new")
	g.post(core.EpochEvent{Epoch: epoch})
	return true
}

func paramsOf(r *replica.Replica) (p command.Params) {
	r.View(func(s *fsm.State) { p = s.Params() })
	return p
}
