package zk

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// A member that should not lead says so to the others by an ephemeral beside the one
// that says that it is connected. Its name is no site's: it has a dot.
// One that nobody reaches says that beside: others are unfit for its sake, since they
// cannot register, and lead better all the same.
const (
	unfitSuffix     = ".unfit"
	unreachedSuffix = ".unreached"
)

func unfitPath(site string) string { return tree.PresentPath + "/" + site + unfitSuffix }

func unreachedPath(site string) string { return tree.PresentPath + "/" + site + unreachedSuffix }

// marked returns the sites that say so among the names of those present.
func marked(names []string, suffix string) (out []string) {
	for _, n := range names {
		if site, ok := strings.CutSuffix(n, suffix); ok {
			out = append(out, site)
		}
	}
	return out
}

// fitness is what watchRoles has seen; it owns it.
type fitness struct {
	attempts facade.Attempts
	unfit    time.Time      // since when this leader is not fit; zero = it is, or does not lead
	unled    time.Time      // since when nobody leads, as an unfit member sees it
	said     relay.Reminder // that no other voter is fit
}

// unfitWhy returns why this member should not lead, "" = it may.
func (l *Log) unfitWhy() string {
	if why := l.Member.UnfitWhy(); why != "" {
		return why
	}
	if why := l.hole.reason(); why != "" {
		return why
	}
	if !l.hasOwnKey() {
		return "its key was replaced: start it again"
	}
	return l.reach.why
}

// publishFitness keeps the ephemerals of a member that is unfit, or not reached, or deletes
// them.
func (l *Log) publishFitness(ctx context.Context) error {
	unfit, unreached := l.group.marksOf(l.cfg.Site)
	stuck := l.hole.reason() != ""
	said := l.mending.said.Swap(stuck)
	return errors.Join(
		l.publishMark(ctx, stuckPath(l.cfg.Site), stuck, said),
		l.publishMark(ctx, unfitPath(l.cfg.Site), l.unfitWhy() != "", unfit),
		l.publishMark(ctx, unreachedPath(l.cfg.Site), l.reach.why != "", unreached))
}

// publishMark has an ephemeral be there or not; said is how it was seen last.
func (l *Log) publishMark(ctx context.Context, path string, is, said bool) error {
	if !is && !said {
		return nil
	}
	n, err := l.c.get(ctx, path)
	if err != nil || n.found == is {
		return err
	}
	if is {
		_, err = l.c.writeHere(ctx, l.c.create(path, []byte(l.nonce), zk.FlagEphemeral))
	} else {
		_, err = l.c.writeHere(ctx, l.c.remove(path))
	}
	if err == nil || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || transient(err) {
		return nil
	}
	return l.c.wrapError("write", path, err)
}

// letsOthers reports whether this member leaves the leadership, which nobody has, to
// voters that are fit. They get two sessions' time.
func (l *Log) letsOthers(led bool) bool {
	f := &l.fitness
	if led || l.unfitWhy() == "" || !l.betterBeside() {
		f.unled = time.Time{}
		return false
	}
	if f.unled.IsZero() {
		f.unled = time.Now()
	}
	return time.Since(f.unled) < 2*l.cfg.session()
}

// betterBeside reports whether a voter is connected that should rather lead than this
// member, which is not fit.
func (l *Log) betterBeside() bool {
	return l.group.otherVoterFit(l.cfg.Site) || l.reach.why != "" && l.group.otherVoterReached(l.cfg.Site)
}

// leadOrHandOver hands over if this member leads, is not fit, and another one is.
// What others say of themselves at the same time is seen within a session, or they
// are not connected any more: as long it waits, unless it has waited for them before.
func (l *Log) leadOrHandOver(ctx context.Context) {
	f, now := &l.fitness, time.Now()
	why := l.unfitWhy()
	if why == "" || l.leaderTerm.Load() == nil {
		f.unfit = time.Time{}
		return
	}
	if f.unfit.IsZero() {
		f.unfit = now
	}
	switch {
	case l.reach.why == "" && now.Sub(f.unfit) < l.cfg.session():
		return
	case !l.betterBeside():
		if f.said.Due("", now) {
			l.log.Warn().Str("because", why).Msg("this leader is not fit, and no other voter is fit and connected: it leads on")
		}
		return
	case !f.attempts.Due(now):
		return
	}
	f.attempts.Note(now)
	l.log.Warn().Str("because", why).Msg("this leader is not fit: handing over")
	if l.cfg.Hooks.HandOver != nil {
		l.cfg.Hooks.HandOver("unfit")
	}
	l.handOver(ctx)
}

var _ coord.Measured = (*Log)(nil)

// Figures implements coord.Measured: the ensemble syncs, not this member.
func (l *Log) Figures() coord.Figures {
	return coord.Figures{
		HandOvers: map[string]uint64{"unfit": l.fitness.attempts.Total(), "turn": l.turns.attempts.Total()},
		Held:      l.Calls.Held(),
	}
}
