package raftlog

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/node/coord"
)

// A renewal is a current read with a witness: the Grantor hears of it before
// the lead is confirmed, and again before the answer goes out. DESIGN.md has
// the argument why no lease is unknown to the next lead.

// Grant implements coord.Log.
func (l *Log) Grant(g coord.Grantor) { l.grantor.Store(&g) }

// Renew implements coord.Log.
func (l *Log) Renew(ctx context.Context, r coord.Renewal) error {
	if r.Site != l.cfg.Site {
		return fmt.Errorf("renew lease of %.80q: %w: this is %s, and a broker renews for itself", r.Site, coord.ErrRefused, l.cfg.Site)
	}
	q := ask{kind: frameRenew, incarnation: r.Incarnation}
	a, err := l.ask(ctx, q, func(ctx context.Context) answer { return l.renewHere(ctx, r) })
	if err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	if err := l.waitApplied(ctx, a.index); err != nil {
		return fmt.Errorf("renew lease: apply up to raft index %d: %w", a.index, err)
	}
	return nil
}

// renewHere decides at the lead.
func (l *Log) renewHere(ctx context.Context, r coord.Renewal) answer {
	term, ok := l.seq.leading()
	if !ok {
		return answer{code: answerRetry}
	}
	no := answer{code: answerRefused, term: term}
	g := l.grantor.Load()
	if g == nil || !(*g).Received(r, term) {
		no.text = fmt.Sprintf("lead %s does not renew incarnation %d of %s", l.cfg.Site, r.Incarnation, r.Site)
		return no
	}
	a := l.reads.confirmed(ctx, term)
	if a.code != answerOK {
		return a
	}
	if !(*g).Confirmed(r, term) {
		no.text = fmt.Sprintf("lead %s dropped the renewal: the loss of incarnation %d of %s was proposed meanwhile",
			l.cfg.Site, r.Incarnation, r.Site)
		return no
	}
	return a
}
