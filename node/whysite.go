package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// hearsay is what an answer adds to the facts of the queue.
type hearsay struct {
	declined []declined
	// bare are sites that have no machine at all, whether they would offer it or not.
	bare map[string]bool
	// closed is why sites lend nothing, as their brokers say.
	closed map[string]fsm.Closure
	own    ownTrouble
}

// ownTrouble is why this broker's own site runs nothing, or not all kinds of tasks:
// only its own broker knows.
type ownTrouble struct {
	site   string
	closed string // why it offers nothing; "" = it does
	away   string // its handlers without a machine, and why
}

// ownPatience is how long an answer that needs no more than the state waits for what
// the core adds to it: that may stand still, as when a disk hangs.
const ownPatience = time.Second

// ownTrouble asks the core and the handlers.
func (b *Broker) ownTrouble(ctx context.Context) ownTrouble {
	ctx, cancel := context.WithTimeout(ctx, ownPatience)
	defer cancel()
	o := ownTrouble{site: b.cfg.Site}
	closed := ""
	if b.ask(ctx, func(c *core) { closed = c.closedWhy() }) == nil { // else it may still be written to
		o.closed = closed
	}
	var away []string
	for _, h := range b.cfg.Handlers {
		if len(h.Capacity()) == 0 {
			away = append(away, fmt.Sprintf("%s has no machine now: %s", h.Name(), h.Status()))
		}
	}
	o.away = fsm.Clip(strings.Join(away, "; "))
	return o
}

// closureText words why a site lends nothing, for those who know no more.
func closureText(c fsm.Closure) string {
	switch c {
	case fsm.NotClosed:
		return ""
	case fsm.ClosedDrain:
		return "its operator drains it"
	case fsm.ClosedLeaving:
		return "it leaves the federation"
	case fsm.ClosedDisk:
		return "its broker's disk is full"
	case fsm.ClosedTrouble:
		return "none of its machines can start tasks"
	}
	return c.String()
}

// closedWhy says why the site offers nothing; "" if it does.
func (c *core) closedWhy() string {
	switch why := c.closure(); why {
	case fsm.ClosedDisk:
		return c.full.Error()
	case fsm.ClosedTrouble:
		return "machine " + c.troubles.of("", c.now.boot)
	default:
		return closureText(why)
	}
}

// hear gathers what is said of a job's sites. REQUIRES: called inside Replica.View.
func (b *Broker) hear(s *fsm.State, v *fsm.WhyView) hearsay {
	h := hearsay{declined: b.cfg.Replica.feed.declined(v.Job), bare: map[string]bool{}, closed: map[string]fsm.Closure{}}
	for i := range v.Sites {
		if x := &v.Sites[i]; x.Why == fsm.HinderedClosed {
			site, _ := s.Site(x.Site)
			h.bare[x.Site], h.closed[x.Site] = site.Capacity == fsm.Resources{}, site.Closed
		}
	}
	return h
}

// last is what was said last; "" if nobody declined.
func (h *hearsay) last() string {
	if n := len(h.declined); n > 0 {
		return "; " + h.declined[n-1].String()
	}
	return ""
}

// text says why one site does not run the job.
func (h *hearsay) text(v *fsm.WhyView, x *fsm.SiteWhy) string {
	text, own := siteText(v, x), ownTrouble{}
	if x.Site == h.own.site {
		own = h.own
	}
	switch x.Why {
	case fsm.HinderedClosed:
		text = h.closedText(x.Site, own)
	case fsm.HinderedKind, fsm.HinderedLabels, fsm.HinderedShape:
		if own.away != "" {
			text += "; " + own.away
		}
	default:
	}
	for _, d := range h.declined {
		switch {
		case d.site != x.Site:
		case x.Why == fsm.HinderedDeclined:
			text = fmt.Sprintf("declined it: %s; it is asked again after its next offer", d.reason)
		default:
			text += "; it declined it before: " + d.reason
		}
	}
	return text
}

// closedText says why a site offers no machine, as far as is known here.
func (h *hearsay) closedText(site string, own ownTrouble) string {
	switch {
	case own.closed != "":
		return "offers no machine now: " + own.closed
	case own.away != "":
		return "offers no machine now: " + own.away
	case h.closed[site] != fsm.NotClosed:
		return "offers no machine now: " + closureText(h.closed[site])
	case h.bare[site]:
		return "has no machine now: what runs its tasks is away"
	}
	return "offers no machine now, and its broker does not say why"
}
