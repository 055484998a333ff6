package zk

import (
	"context"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// dropFalseHolder deletes what stands at /leader and is no leader's: an ephemeral of one who has not taken /lead for
// two sessions' time, or a znode that no session ends.
func (l *Log) dropFalseHolder(ctx context.Context, holder node, now tree.LeadRecord) error {
	leads := holder.found && holder.stat.EphemeralOwner != 0 && now.Nonce != "" && string(holder.data) == now.Nonce
	switch {
	case !holder.found || leads || !coord.MayVote(l.cfg.Machine, l.cfg.Site):
		l.falseHolder, l.falseSince = 0, 0
		return nil
	case l.falseHolder != holder.stat.Czxid:
		l.falseHolder, l.falseSince = holder.stat.Czxid, sinceStart()
	}
	if sinceStart()-l.falseSince < 2*l.cfg.session() {
		return nil
	}
	l.falseHolder = 0
	l.log.Warn().Msg("somebody who does not lead holds the leadership: taking it away")
	if err := l.c.purgeBelow(ctx, tree.LeaderPath); err != nil {
		return err
	}
	return l.c.deleteHere(ctx, tree.LeaderPath)
}

// remindToRotate tells people of each site that was expelled, once, that it still has the password.
func (l *Log) remindToRotate(members []string) {
	for _, site := range members {
		switch was := l.expelled[site]; {
		case coord.Expelled(l.cfg.Machine, site) == was:
		case was:
			delete(l.expelled, site)
		default:
			l.expelled[site] = true
			l.log.Warn().Str("site", site).
				Msg("this site was expelled and has the password of the federation's tree: replace it (cloudshare zk rotate)")
		}
	}
}
