package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// reign is one term that this member leads.
type reign struct {
	term    uint64
	version int32           // of /lead: what appends check
	session int64           // that holds /leader
	ctx     context.Context // ends with the reign
	end     context.CancelFunc

	mu     sync.Mutex
	open   bool   // the end of the log is known: entries may be ordered
	next   uint64 // number of the next entry
	first  uint64 // lowest entry that is kept
	last   *flight
	flying map[uint64]*flight // sent, not applied
	bytes  int64              // of the entries since the last snapshot, those in flight included
	feeds  map[*feed]struct{} // to members that are told
	moved  coord.Broadcast    // something of these but feeds changed
}

// orders says whether entries may be ordered.
func (r *reign) orders() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// watchRoles keeps this member's ephemerals, takes the lead when nobody has it,
// and follows who is who, until ctx ends. Watches only hurry it: they can be lost,
// so everything is looked at again every so often.
func (l *Log) watchRoles(ctx context.Context) {
	poll := time.NewTicker(l.t.poll)
	defer poll.Stop()
	watches := newWatches()
	for {
		changed := l.c.changed.Wait()
		if err := l.look(ctx, watches); err != nil && ctx.Err() == nil && !transient(err) {
			l.fail(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-watches.fired:
		case <-changed:
		case <-poll.C:
		}
	}
}

// passTime has the calls know that time passes, until ctx ends. It does not wait for
// a look, which takes as long as the ensemble does.
func (l *Log) passTime(ctx context.Context) {
	tick := time.NewTicker(l.t.tick / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.calls.Tick(now)
			l.calls.Idle()
		}
	}
}

// look compares what the tree says with what this member does about it.
func (l *Log) look(ctx context.Context, w *watches) error {
	if !l.c.up.Load() {
		// After a session's time without a word somebody else may lead, and nobody
		// is known to.
		if l.c.away() > l.cfg.session() {
			l.abdicate("no server of the ensemble answers")
			l.tell(l.group.forget())
		}
		return nil
	}
	ctx, cancel := l.c.whileAnswered(ctx, l.cfg.session(), errPatience)
	defer cancel()
	charter, err := w.read(ctx, l.c, pathFederation)
	if err == nil {
		err = l.recognize(charter)
	}
	if err == nil {
		err = l.appear(ctx)
	}
	if err == nil {
		err = l.sayFitness(ctx)
	}
	if err != nil {
		return err
	}
	holder, err := w.read(ctx, l.c, pathLeader)
	if err != nil {
		return err
	}
	if l.stands(holder.found) {
		if holder, err = l.seize(ctx, w); err != nil {
			return err
		}
	}
	fence, err := w.read(ctx, l.c, pathLead)
	if err != nil {
		return err
	}
	if !fence.found {
		return fmt.Errorf("%w: %s%s is missing", ErrDamaged, l.c.root, pathLead)
	}
	var now leading
	if err = parse(l.c.root+pathLead, fence.data, &now); err != nil {
		return err
	}
	if err = now.moved(l.c.root); err != nil {
		return err
	}
	if now, err = l.crown(ctx, holder, fence, now); err != nil {
		return err
	}
	if err = l.meet(ctx, w, holder, now); err != nil {
		return err
	}
	l.leadOrHandOver(ctx)
	return nil
}

// crown takes /lead if this member holds /leader, and gives up if another has
// taken it.
func (l *Log) crown(ctx context.Context, holder, fence node, now leading) (leading, error) {
	r := l.reign.Load()
	if r != nil && (now.Term != r.term || now.Nonce != l.nonce) {
		l.abdicate("another member leads")
		r = nil
	}
	mine := holder.found && string(holder.data) == l.nonce && holder.stat.EphemeralOwner == l.c.zk.SessionID()
	switch {
	case r != nil && !mine:
		// The session expired, or somebody deleted the ephemeral: nobody can know
		// that we lead.
		l.abdicate("its session expired")
	case r == nil && mine:
		return l.ascend(ctx, holder.stat.EphemeralOwner, fence, now)
	}
	return now, nil
}

// ascend begins a term. From here on no former lead can append: the version of
// /lead has changed.
func (l *Log) ascend(ctx context.Context, session int64, fence node, before leading) (leading, error) {
	mine := leading{Term: before.Term + 1, Site: l.cfg.Site, Peer: l.addr, Nonce: l.nonce}
	res, err := l.c.writeHere(ctx, l.c.set(pathLead, encode(mine), fence.stat.Version))
	switch {
	case errors.Is(err, zk.ErrBadVersion), transient(err):
		coord.Signal(l.kick) // look again
		return before, nil
	case err != nil:
		return before, l.c.name("take", pathLead, err)
	}
	r := &reign{term: mine.Term, version: res[0].Stat.Version, session: session, flying: map[uint64]*flight{}, feeds: map[*feed]struct{}{}}
	r.ctx, r.end = context.WithCancel(l.ctx)
	l.reign.Store(r)
	l.reignNews.Fire()
	return mine, nil
}

// abdicate ends the reign, if there is one. What is in flight settles by itself:
// once another lead has taken /lead it can never be appended.
func (l *Log) abdicate(why string) {
	if r := l.reign.Swap(nil); r != nil {
		l.log.Info().Uint64("term", r.term).Str("because", why).Msg("lays the lead down")
		r.end()
		r.moved.Fire()
		l.reignNews.Fire()
	}
}

// openReign says that the log ends before entry next: orders may begin.
func (l *Log) openReign(ctx context.Context, r *reign, next uint64) error {
	logs, err := l.c.children(ctx, pathLog)
	if err != nil {
		return err
	}
	first := next
	for _, name := range logs.children {
		n, err := parseNumber(name)
		if err != nil {
			return fmt.Errorf("list %s%s: %w", l.c.root, pathLog, err)
		}
		if n >= next {
			// Unless another lead, who came meanwhile, wrote it.
			if _, err := l.fenced(r); errors.Is(err, zk.ErrBadVersion) {
				coord.Signal(l.kick)
				l.lose(r, "another member leads")
				return nil
			} else if err != nil {
				return err
			}
			return fmt.Errorf("%w: %s%s is missing, %s is there: restore it, or recover from a broker's copy",
				ErrDamaged, l.c.root, logPath(next), name)
		}
		first = min(first, n)
	}
	if l.c.zk.SessionID() != r.session {
		// A new session may have begun at a server that lags behind the fence (find).
		coord.Signal(l.kick)
		return nil
	}
	if err := l.sweepParts(r, next); err != nil {
		return err
	}
	r.mu.Lock()
	r.open, r.next, r.first, r.bytes = true, next, first, l.machine.grown.Load()
	r.mu.Unlock()
	r.moved.Fire()
	coord.Signal(l.grown) // the log may be full already, and then nothing else says so
	l.calls.FirstEntry()
	l.calls.LeadChanged()
	return nil
}

// stands says whether this member takes the leadership now; somebody may lead.
func (l *Log) stands(led bool) bool {
	return !l.letsOthers(led) && !led && !l.resting.Load() && l.group.isVoter(l.cfg.Site) && sinceStart() > time.Duration(l.holdOff.Load())
}

// seize creates the ephemeral that elects, and returns what is there then.
func (l *Log) seize(ctx context.Context, w *watches) (node, error) {
	_, err := l.c.writeHere(ctx, l.c.create(pathLeader, []byte(l.nonce), zk.FlagEphemeral))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) && !transient(err) {
		return node{}, l.c.name("create", pathLeader, err)
	}
	return w.read(ctx, l.c, pathLeader)
}

// handOver lets another voter lead, if one is there.
func (l *Log) handOver(ctx context.Context) {
	if _, present := l.group.rest(l.cfg.Site); present == 0 || l.reign.Load() == nil {
		return
	}
	l.abdicate("it hands over")
	l.holdOff.Store(int64(sinceStart() + l.cfg.session()))
	_, _ = l.c.writeHere(ctx, l.c.remove(pathLeader)) // if it stays, this member leads again
	coord.Signal(l.kick)
}

// appear creates the ephemeral that says this broker is connected. One of a former
// session goes with it.
func (l *Log) appear(ctx context.Context) error {
	path := pathPresent + "/" + l.cfg.Site
	n, err := l.c.get(ctx, path)
	if err != nil || n.found {
		return err
	}
	_, err = l.c.writeHere(ctx, l.c.create(path, []byte(l.nonce), zk.FlagEphemeral))
	if err == nil || errors.Is(err, zk.ErrNodeExists) || transient(err) {
		return nil
	}
	return l.c.name("create", path, err)
}

// meet notes who is who.
func (l *Log) meet(ctx context.Context, w *watches, holder node, now leading) error {
	var lists [3][]string
	var unfit []string
	for i, path := range []string{pathMembers, pathVoters, pathPresent} {
		n, err := w.list(ctx, l.c, path)
		switch {
		case err != nil:
			return err
		case !n.found:
			return fmt.Errorf("%w: %s%s is missing", ErrDamaged, l.c.root, path)
		}
		lists[i] = sites(n.children)
		if path == pathPresent {
			unfit = unfitSites(n.children)
		}
	}
	lead := now
	if !holder.found || string(holder.data) != now.Nonce {
		lead = leading{}
	}
	l.tell(l.group.set(lead, now.Term, lists[0], lists[1], lists[2], unfit))
	return l.stand(ctx)
}

// tell passes on that the lead, or anything, has changed.
func (l *Log) tell(newLead bool, rest ...bool) {
	if newLead {
		lead := l.group.leads()
		l.calls.LeadChanged()
		if l.cfg.Hooks.Lead != nil {
			l.cfg.Hooks.Lead(lead.Site)
		}
		l.log.Info().Str("lead", lead.Site).Uint64("term", l.group.status().Term).Msg("lead changed")
	}
	if newLead || slices.Contains(rest, true) {
		coord.Signal(l.changed)
	}
}

// backend is the log as the calls see it; its indexes are entry numbers.
type backend struct{ *Log }

var _ relay.Backend = backend{}

// Lead implements relay.Backend. The last lead known is kept for a session's time
// while the ensemble cannot be reached: calls may reach it all the same.
func (b backend) Lead() (to relay.Peer, self bool) {
	lead := b.group.leads()
	return relay.Peer{Site: lead.Site, Addr: lead.Peer}, lead.Site == b.cfg.Site && lead.Nonce == b.nonce
}

// Orders implements relay.Backend.
func (b backend) Orders() (term uint64, ok bool) {
	r := b.reign.Load()
	if r == nil || !r.orders() {
		return 0, false
	}
	return r.term, true
}

// Term implements relay.Backend.
func (b backend) Term() uint64 { return b.group.status().Term }

// Confirm implements relay.Backend: a transaction that only checks is ordered
// among all others by the ensemble. Entries in flight are covered, too: they may
// have been read elsewhere before this member hears that they are written.
func (b backend) Confirm(ctx context.Context, term uint64) (index uint64, err error) {
	r := b.reign.Load()
	if r == nil || r.term != term {
		return 0, relay.ErrRetry
	}
	r.mu.Lock()
	index = r.next - 1
	r.mu.Unlock()
	_, err = b.c.writeHere(ctx, b.c.check(pathLead, r.version))
	if err != nil {
		coord.Signal(b.kick)
		return 0, b.c.name("check", pathLead, err)
	}
	return index, nil
}

// With implements relay.Backend.
func (b backend) With(f func(coord.Machine)) { b.machine.with(f) }

// Closed implements relay.Backend.
func (b backend) Closed() error { return b.life.Closed() }
