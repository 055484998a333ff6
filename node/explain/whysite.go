package explain

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// SiteReports is what an answer adds to the facts of the queue.
type SiteReports struct {
	Declined []node.Declined
	// Bare are sites that have no machine at all, whether they would offer it or not.
	Bare map[string]bool
	// Closed is why sites lend nothing, as their brokers say.
	Closed map[string]command.Closure
	Own    OwnTrouble
}

// OwnTrouble is why this broker's own site runs nothing, or not all kinds of tasks:
// only its own broker knows.
type OwnTrouble struct {
	Site   string
	Closed string // why it offers nothing; "" = it does
	Away   string // its handlers without a machine, and why
}

// closureText words why a site lends nothing, for those who know no more.
func closureText(c command.Closure) string {
	switch c {
	case command.NotClosed:
		return ""
	case command.ClosedDrain:
		return "its operator drains it"
	case command.ClosedLeaving:
		return "it leaves the federation"
	case command.ClosedDisk:
		return "its broker's disk is full"
	case command.ClosedTrouble:
		return "none of its machines can start tasks"
	case command.ClosedDiffers:
		return "other sites contradict its broker's history or state"
	}
	return c.String()
}

// last returns what was said last; "" if nobody declined.
func (h *SiteReports) last() string {
	if n := len(h.Declined); n > 0 {
		return "; " + h.Declined[n-1].String()
	}
	return ""
}

// text says why one site does not run the job.
func (h *SiteReports) text(v *fsm.WhyView, x *fsm.SiteWhy) string {
	text, own := siteText(v, x), OwnTrouble{}
	if x.Site == h.Own.Site {
		own = h.Own
	}
	switch x.Why {
	case fsm.HinderedClosed:
		text = h.closedText(x.Site, own)
	case fsm.HinderedKind, fsm.HinderedLabels, fsm.HinderedNetwork, fsm.HinderedFiles, fsm.HinderedShape:
		if own.Away != "" {
			text += "; " + own.Away
		}
	default:
	}
	for _, d := range h.Declined {
		switch {
		case d.Site != x.Site:
		case x.Why == fsm.HinderedDeclined:
			text = fmt.Sprintf("declined it: %s; it is asked again after its next offer", d.Reason)
		default:
			text += "; it declined it before: " + d.Reason
		}
	}
	return text
}

// closedText says why a site offers no machine, as far as is known here.
func (h *SiteReports) closedText(site string, own OwnTrouble) string {
	switch {
	case own.Closed != "":
		return "offers no machine now: " + own.Closed
	case own.Away != "":
		return "offers no machine now: " + own.Away
	case h.Closed[site] != command.NotClosed:
		return "offers no machine now: " + closureText(h.Closed[site])
	case h.Bare[site]:
		return "has no machine now: what runs its tasks is away"
	}
	return "offers no machine now, and its broker does not say why"
}

// DateSummary puts before a summary of when it is, if its facts are stale.
func DateSummary(summary string, fresh node.Freshness) string {
	if words := fresh.Words(); words != "" {
		return words + "; then: " + summary
	}
	return summary
}

// Fill puts the facts of the queue into words: whose turn it is, what each site says,
// and all of it in one line. Facts that are stale give no estimate.
func Fill(w *node.Why, v *fsm.WhyView, h *SiteReports, fresh node.Freshness) {
	w.View = v
	if able, _ := ableSites(v); able > 0 { // else it is nobody's turn
		w.Turn = turnText(v)
	}
	w.Sites = make([]node.SiteReason, 0, len(v.Sites))
	for i := range v.Sites {
		w.Sites = append(w.Sites, node.SiteReason{SiteWhy: v.Sites[i], Text: h.text(v, &v.Sites[i])})
	}
	if fresh.Stale() {
		w.Estimate = node.Estimate{Unknown: "the federation's state is known " + fresh.Words()}
		w.Summary = DateSummary(staleSummary(v), fresh) + h.last()
		return
	}
	w.Summary = summaryOf(v, w.Estimate) + h.last()
}

// ClosedText words why a site offers nothing; words are what its broker knows of that.
func ClosedText(why command.Closure, words string) string { return cmp.Or(words, closureText(why)) }
