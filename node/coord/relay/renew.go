package relay

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/node/coord"
)

// A renewal is a current read with a witness: the Grantor hears of it before
// the leader is confirmed, and again before the answer goes out. coord's DESIGN.md
// has the argument why no lease is unknown to the next leader.

// Grant implements coord.Log.
func (c *Calls) Grant(g coord.Grantor) { c.grantor.Store(&g) }

// Renew implements coord.Log.
func (c *Calls) Renew(ctx context.Context, r coord.Renewal) error {
	if r.Site != c.cfg.Site {
		return fmt.Errorf("renew lease of %.80q: %w: this is %s, and a broker renews for itself", r.Site, coord.ErrRefused, c.cfg.Site)
	}
	q := leaderQuestion{kind: frameRenew, incarnation: r.Incarnation}
	a, err := c.askLeader(ctx, q, func(ctx context.Context) answer { return c.renewHere(ctx, r) })
	if err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	if err := c.awaitApplied(ctx, a.index); err != nil {
		return fmt.Errorf("renew lease: apply up to index %d: %w", a.index, err)
	}
	return nil
}

// renewHere decides at the leader.
func (c *Calls) renewHere(ctx context.Context, r coord.Renewal) answer {
	term, ok := c.seq.leading()
	if !ok {
		return answer{code: answerRetry}
	}
	no := answer{code: answerRefused, term: term}
	g := c.grantor.Load()
	if g == nil || !(*g).Received(r, term) {
		no.text = fmt.Sprintf("leader %s does not renew incarnation %d of %s", c.cfg.Site, r.Incarnation, r.Site)
		return no
	}
	a := c.reads.confirmed(ctx, term)
	if a.code != answerOK {
		return a
	}
	if !(*g).Confirmed(r, term) {
		no.text = fmt.Sprintf("leader %s dropped the renewal: the loss of incarnation %d of %s was proposed meanwhile, or its registration is not applied there yet",
			c.cfg.Site, r.Incarnation, r.Site)
		return no
	}
	return a
}
