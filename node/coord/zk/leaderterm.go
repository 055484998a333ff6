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
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// leaderTerm is one term that this member leads.
type leaderTerm struct {
	c       *client
	term    uint64
	version int32           // of /lead: what appends check
	session int64           // that holds /leader
	ctx     context.Context // ends with the term
	end     context.CancelFunc

	order  sync.Mutex // held while an entry is given its number and signed
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

// isOpen reports whether entries may be ordered.
func (r *leaderTerm) isOpen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// watchRoles keeps this member's ephemerals, takes the leadership when nobody has it,
// and follows who is who, until ctx ends. Watches only hurry it: they can be lost,
// so everything is looked at again every so often.
func (l *Log) watchRoles(ctx context.Context) {
	poll := time.NewTicker(l.t.poll)
	defer poll.Stop()
	watches := newWatches()
	for {
		changed := l.c.changed.Wait()
		if err := l.reconcile(ctx, watches); err != nil && ctx.Err() == nil && !transient(err) {
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

// runTicker has the calls know that time passes, until ctx ends. It does not wait for
// a look, which takes as long as the ensemble does.
func (l *Log) runTicker(ctx context.Context) {
	tick := time.NewTicker(l.t.tick / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.Calls.Tick(now)
			l.Calls.Idle()
		}
	}
}

// reconcile compares what the tree says with what this member does about it.
func (l *Log) reconcile(ctx context.Context, w *watches) error {
	if !l.c.up.Load() {
		// After a session's time without a word somebody else may lead, and nobody
		// is known to.
		if l.c.disconnectedFor() > l.cfg.session() {
			l.stepDown("no server of the ensemble answers")
			l.notifyChanges(l.group.forget())
		}
		return nil
	}
	ctx, cancel := l.c.whileAnswered(ctx, l.cfg.session(), errUnanswered)
	defer cancel()
	charter, err := w.read(ctx, l.c, tree.FederationPath)
	if err == nil {
		err = l.checkCharter(charter)
	}
	if err == nil {
		err = l.announcePresence(ctx)
	}
	if err == nil {
		err = l.publishFitness(ctx)
	}
	if err != nil {
		return err
	}
	holder, err := w.read(ctx, l.c, tree.LeaderPath)
	if err != nil {
		return err
	}
	l.noteLeader(l.group.leads().Site, holder.found)
	if l.shouldLead(holder.found) {
		if holder, err = l.tryElect(ctx, w); err != nil {
			return err
		}
	}
	fence, err := w.read(ctx, l.c, tree.LeadPath)
	if err != nil {
		return err
	}
	if !fence.found {
		return fmt.Errorf("%w: %s%s is missing", tree.ErrDamaged, l.c.root, tree.LeadPath)
	}
	now := l.readLead(fence.data)
	if err = l.dropFalseHolder(ctx, holder, now); err != nil {
		return err
	}
	if err = movedError(now, l.c.root); err != nil {
		return err
	}
	if now, err = l.reconcileLeadership(ctx, holder, fence, now); err != nil {
		return err
	}
	if err = l.refreshMembership(ctx, w, holder, now); err != nil {
		return err
	}
	l.updateReach()
	l.leadOrHandOver(ctx)
	l.handOverByTurn(ctx)
	return nil
}

// reconcileLeadership takes /lead if this member holds /leader, and gives up if another has
// taken it.
func (l *Log) reconcileLeadership(
	ctx context.Context, holder, fence node, now tree.LeadRecord,
) (tree.LeadRecord, error) {
	r := l.leaderTerm.Load()
	if r != nil && (now.Term != r.term || now.Nonce != l.nonce) {
		l.stepDown("another member leads")
		r = nil
	}
	mine := holder.found && string(holder.data) == l.nonce && holder.stat.EphemeralOwner == l.c.zk.SessionID()
	switch {
	case r != nil && !mine:
		// The session expired, or somebody deleted the ephemeral: nobody can know
		// that we lead.
		l.stepDown("its session expired")
	case r == nil && mine:
		return l.beginTerm(ctx, holder.stat.EphemeralOwner, fence, now)
	}
	return now, nil
}

// beginTerm begins a term. From here on no former leader can append: the version of
// /lead has changed.
func (l *Log) beginTerm(
	ctx context.Context, session int64, fence node, before tree.LeadRecord,
) (tree.LeadRecord, error) {
	state, _ := l.stateTerm()
	last := max(before.Term, l.group.status().Term, state)
	mine := tree.LeadRecord{Term: last + 1, Site: l.cfg.Site, Peer: l.Addr(), Nonce: l.nonce}
	l.signLead(&mine)
	res, err := l.c.writeHere(ctx, l.c.set(tree.LeadPath, tree.Encode(mine), fence.stat.Version))
	switch {
	case errors.Is(err, zk.ErrBadVersion), transient(err):
		coord.Signal(l.kick) // look again
		return before, nil
	case err != nil:
		return before, l.c.wrapError("take", tree.LeadPath, err)
	}
	r := &leaderTerm{
		c: l.c, term: mine.Term, version: res[0].Stat.Version, session: session, flying: map[uint64]*flight{},
		feeds: map[*feed]struct{}{},
	}
	r.ctx, r.end = context.WithCancel(l.Ctx)
	l.leaderTerm.Store(r)
	l.termChanged.Fire()
	return mine, nil
}

// stepDown ends the term, if there is one. What is in flight settles by itself:
// once another leader has taken /lead it can never be appended.
func (l *Log) stepDown(why string) {
	if r := l.leaderTerm.Swap(nil); r != nil {
		l.log.Info().Uint64("term", r.term).Str("because", why).Msg("stepping down")
		r.end()
		r.moved.Fire()
		l.termChanged.Fire()
	}
}

// openTerm says that the log ends before entry next: orders may begin.
func (l *Log) openTerm(ctx context.Context, r *leaderTerm, next uint64) error {
	logs, err := l.c.children(ctx, tree.LogPath)
	if err != nil {
		return err
	}
	first := next
	for _, name := range logs.children {
		if n, err := tree.ParseNumber(name); err == nil {
			first = min(first, n)
		}
	}
	if over, err := l.cannotOpen(ctx, r, next); over || err != nil {
		return err
	}
	if l.c.zk.SessionID() != r.session {
		// A new session may have begun at a server that lags behind the fence (find).
		coord.Signal(l.kick)
		return nil
	}
	if err := r.sweepParts(next); err != nil {
		return err
	}
	r.mu.Lock()
	r.open, r.next, r.first, r.bytes = true, next, first, l.machine.grown.Load()
	r.mu.Unlock()
	r.moved.Fire()
	coord.Signal(l.grown) // the log may be full already, and then nothing else says so
	l.Calls.FirstEntry()
	l.Calls.LeadChanged()
	return nil
}

// cannotOpen reports whether a term ends before it has begun, or does not begin yet: its log has a hole, or has entries
// of later terms. A hole that no voter can fill is the end of the log: any elector can sign what stands behind one.
// What others have put behind the end goes.
func (l *Log) cannotOpen(ctx context.Context, r *leaderTerm, next uint64) (over bool, err error) {
	if _, err = r.writeFenced(); errors.Is(err, zk.ErrBadVersion) {
		coord.Signal(l.kick)
		l.stepDownFrom(r, "another member leads")
		return true, nil
	} else if err != nil {
		return false, err
	}
	goesOn, err := l.goesOnBehind(ctx, next)
	if err != nil {
		return false, err
	}
	if state, known := l.stateTerm(); known && state >= r.term {
		coord.Signal(l.kick)
		l.stepDownFrom(r, fmt.Sprintf("the log has entries of term %d", state))
		return true, nil
	}
	if goesOn {
		is, err := l.c.get(ctx, tree.EntryPath(next))
		if err != nil {
			return false, err
		}
		l.hole.open(l, l.missing(next, is.found))
		if l.group.otherVoterFit(l.cfg.Site) {
			l.handOver(ctx) // it may have what is missing here
			return true, l.rest(ctx)
		}
		if !l.hole.isOld(next, 2*l.cfg.session()) {
			return true, l.rest(ctx)
		}
		l.log.Warn().Uint64("entry", next).Msg("no voter that is connected has this entry: what stands behind it goes, and its number is given again")
		l.hole.close()
	}
	return false, r.sweep(tree.LogPath, func(name string) bool {
		n, err := tree.ParseNumber(name)
		return err != nil || n >= next
	})
}

// shouldLead reports whether this member takes the leadership now; somebody may lead.
func (l *Log) shouldLead(led bool) bool {
	return !l.letsOthers(led) && !led && !l.Resting() && l.group.isVoter(l.cfg.Site) &&
		coord.MayVote(l.cfg.Machine, l.cfg.Site) && l.hasOwnKey() && !l.awaitsTurn() &&
		sinceStart() > time.Duration(l.holdOff.Load())
}

// tryElect creates the ephemeral that elects, and returns what is there then.
func (l *Log) tryElect(ctx context.Context, w *watches) (node, error) {
	_, err := l.c.writeHere(ctx, l.c.create(tree.LeaderPath, []byte(l.nonce), zk.FlagEphemeral))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) && !transient(err) {
		return node{}, l.c.wrapError("create", tree.LeaderPath, err)
	}
	return w.read(ctx, l.c, tree.LeaderPath)
}

// handOver lets another voter lead, if one is there.
func (l *Log) handOver(ctx context.Context) {
	if _, present := l.group.otherVoters(l.cfg.Site); present == 0 || l.leaderTerm.Load() == nil {
		return
	}
	l.stepDown("it hands over")
	l.holdOff.Store(int64(sinceStart() + l.cfg.session()))
	_, _ = l.c.writeHere(ctx, l.c.remove(tree.LeaderPath)) // if it stays, this member leads again
	coord.Signal(l.kick)
}

// announcePresence creates the ephemeral that says this broker is connected. One of a former
// session goes with it.
func (l *Log) announcePresence(ctx context.Context) error {
	path := tree.PresentPath + "/" + l.cfg.Site
	n, err := l.c.get(ctx, path)
	if err != nil || n.found {
		return err
	}
	_, err = l.c.writeHere(ctx, l.c.create(path, []byte(l.nonce), zk.FlagEphemeral))
	if err == nil || errors.Is(err, zk.ErrNodeExists) || transient(err) {
		return nil
	}
	return l.c.wrapError("create", path, err)
}

// refreshMembership notes who is who.
func (l *Log) refreshMembership(ctx context.Context, w *watches, holder node, now tree.LeadRecord) error {
	var lists [3][]string
	var unfit, unreached, stuck []string
	for i, path := range []string{tree.MembersPath, tree.VotersPath, tree.PresentPath} {
		n, err := w.list(ctx, l.c, path)
		switch {
		case err != nil:
			return err
		case !n.found:
			return fmt.Errorf("%w: %s%s is missing", tree.ErrDamaged, l.c.root, path)
		}
		lists[i] = tree.Sites(n.children)
		if path == tree.PresentPath {
			unfit, unreached = marked(n.children, unfitSuffix), marked(n.children, unreachedSuffix)
			stuck = marked(n.children, stuckSuffix)
		}
	}
	lead := now
	if !holder.found || string(holder.data) != now.Nonce {
		lead = tree.LeadRecord{}
	}
	l.notifyChanges(l.group.set(lead, now.Term, lists[0], lists[1], lists[2], unfit, unreached))
	l.remindToRotate(lists[0])
	if err := l.lookAtSnapshot(ctx, w, &stuck); err != nil {
		return err
	}
	l.mend(stuck)
	return l.ensureVoter(ctx)
}

// notifyChanges passes on that the leader, or anything, has changed.
func (l *Log) notifyChanges(newLead bool, rest ...bool) {
	if newLead {
		lead := l.group.leads()
		l.Calls.LeadChanged()
		if l.cfg.Hooks.Lead != nil {
			l.cfg.Hooks.Lead(lead.Site)
		}
		l.log.Info().Str("leader", lead.Site).Uint64("term", l.group.status().Term).Msg("leader changed")
	}
	if newLead || slices.Contains(rest, true) {
		l.SignalChanged()
	}
}

// backend is the log as the calls see it; its indexes are entry numbers.
type backend struct{ *Log }

var _ relay.Backend = backend{}

// Lead implements relay.Backend. The last leader known is kept for a session's time
// while the ensemble cannot be reached: calls may reach it all the same.
func (b backend) Lead() (to relay.Peer, self bool) {
	lead := b.group.leads()
	return relay.Peer{Site: lead.Site, Addr: lead.Peer}, lead.Site == b.cfg.Site && lead.Nonce == b.nonce
}

// Orders implements relay.Backend.
func (b backend) Orders() (term uint64, ok bool) {
	r := b.leaderTerm.Load()
	if r == nil || !r.isOpen() {
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
	r := b.leaderTerm.Load()
	if r == nil || r.term != term {
		return 0, relay.ErrRetry
	}
	r.mu.Lock()
	index = r.next - 1
	r.mu.Unlock()
	_, err = b.c.writeHere(ctx, b.c.check(tree.LeadPath, r.version))
	if err != nil {
		coord.Signal(b.kick)
		return 0, b.c.wrapError("check", tree.LeadPath, err)
	}
	return index, nil
}

// With implements relay.Backend.
func (b backend) With(f func(coord.Machine)) { b.machine.with(f) }

// Closed implements relay.Backend.
func (b backend) Closed() error { return b.ClosedError() }
