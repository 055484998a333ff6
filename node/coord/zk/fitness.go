package zk

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A member that should not lead says so to the others by an ephemeral beside the one
// that says that it is connected. Its name is no site's: it has a dot.
const unfitSuffix = ".unfit"

func unfitPath(site string) string { return pathPresent + "/" + site + unfitSuffix }

// unfitSites returns the sites that say so among the names of those present.
func unfitSites(names []string) (out []string) {
	for _, n := range names {
		if site, ok := strings.CutSuffix(n, unfitSuffix); ok {
			out = append(out, site)
		}
	}
	return out
}

// fitness is what watchRoles has seen; it owns it.
type fitness struct {
	attempts relay.Attempts
	unfit    time.Time // since when this leader is not fit; zero = it is, or does not lead
	unled    time.Time // since when nobody leads, as an unfit member sees it
	said     time.Time // when it was last said that no other voter is fit
}

// sayAgain is after how long the log repeats what does not change.
const sayAgain = time.Minute

// SetUnfit implements coord.Log.
func (l *Log) SetUnfit(why string) {
	if old := l.unfit.Swap(&why); old == nil && why != "" || old != nil && *old != why {
		coord.Signal(l.kick)
	}
}

// unfitWhy is why this member should not lead, "" = it may.
func (l *Log) unfitWhy() string {
	if why := l.unfit.Load(); why != nil {
		return *why
	}
	return ""
}

// sayFitness keeps the ephemeral of an unfit member, or deletes it.
func (l *Log) sayFitness(ctx context.Context) error {
	unfit := l.unfitWhy() != ""
	if !unfit && !l.group.isUnfit(l.cfg.Site) {
		return nil
	}
	path := unfitPath(l.cfg.Site)
	n, err := l.c.get(ctx, path)
	if err != nil || n.found == unfit {
		return err
	}
	if unfit {
		_, err = l.c.writeHere(ctx, l.c.create(path, []byte(l.nonce), zk.FlagEphemeral))
	} else {
		_, err = l.c.writeHere(ctx, l.c.remove(path))
	}
	if err == nil || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || transient(err) {
		return nil
	}
	return l.c.name("write", path, err)
}

// letsOthers reports whether this member leaves the leadership, which nobody has, to
// voters that are fit. They get two sessions' time.
func (l *Log) letsOthers(led bool) bool {
	f := &l.fitness
	if led || l.unfitWhy() == "" || !l.group.fitBeside(l.cfg.Site) {
		f.unled = time.Time{}
		return false
	}
	if f.unled.IsZero() {
		f.unled = time.Now()
	}
	return time.Since(f.unled) < 2*l.cfg.session()
}

// leadOrHandOver hands over if this member leads, is not fit, and another one is.
// What others say of themselves at the same time is seen within a session, or they
// are not connected any more: as long it waits.
func (l *Log) leadOrHandOver(ctx context.Context) {
	f, now := &l.fitness, time.Now()
	why := l.unfitWhy()
	if why == "" || l.reign.Load() == nil {
		f.unfit = time.Time{}
		return
	}
	if f.unfit.IsZero() {
		f.unfit = now
	}
	switch {
	case now.Sub(f.unfit) < l.cfg.session():
		return
	case !l.group.fitBeside(l.cfg.Site):
		if now.Sub(f.said) > sayAgain {
			f.said = now
			l.log.Warn().Str("because", why).Msg("this leader is not fit, and no other voter is fit and connected: it leads on, and judges no lost site")
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
	return coord.Figures{HandOvers: map[string]uint64{"unfit": l.fitness.attempts.Total()}}
}
