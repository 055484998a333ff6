package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// Why says why a job waits, or what would become of one that is only asked about.
type Why struct {
	Job     fsm.JobID // Num is 0 for a job that is only asked about
	State   string    // of the job
	Waiting uint32    // tasks
	Summary string    // all of it in one line
	// View are the facts of the federation's queue, nil if nothing of the job
	// waits there.
	View  *fsm.WhyView
	Turn  string // who goes first, and by how much; "" if no site can run it
	Sites []SiteReason
	// Estimate is of the next task's start.
	Estimate    Estimate
	Calibration Calibration
}

// SiteReason is a site's hindrance in words.
type SiteReason struct {
	fsm.SiteWhy
	Text string
}

// Why says why a job waits: what goes first, what keeps each site from running
// it, and when it will probably start. A job that the federation knows is
// explained by any broker, a home job by its owner's.
func (b *Broker) Why(ctx context.Context, id fsm.JobID) (Why, error) {
	fresh := b.Freshness() // before the state is read
	for range 2 {          // a job may be published between the two looks
		if w, ok := b.federationWhy(ctx, id, fresh); ok {
			return w, nil
		}
		if id.Site != b.cfg.Site {
			return Why{}, b.elsewhere(id.Site, "owner")
		}
		var w Why
		found := false
		if err := b.ask(ctx, func(c *core) { w, found = c.homeWhy(id.Num) }); err != nil {
			return Why{}, err
		}
		if found {
			w.Calibration = b.estimates.Calibration()
			return w, nil
		}
	}
	return Why{}, b.missing("job " + id.String())
}

func (b *Broker) federationWhy(ctx context.Context, id fsm.JobID, fresh Freshness) (w Why, ok bool) {
	var v fsm.WhyView
	var h hearsay
	b.cfg.Replica.View(func(s *fsm.State) {
		v, ok = s.Why(id)
		h = b.hear(s, &v)
	})
	if !ok {
		return Why{}, false
	}
	w = Why{Job: id, State: v.State.String(), Waiting: v.Waiting, Calibration: b.estimates.Calibration()}
	if v.Waiting == 0 {
		w.Summary = "none of its tasks waits: " + w.State
		if v.State == fsm.Withdrawn {
			w.Summary = fmt.Sprintf("its tasks wait for its owner %s, which is away", id.Site)
		}
		w.Estimate.Unknown = "nothing waits for its turn"
		w.Summary = dateSummary(w.Summary, fresh)
		return w, true
	}
	h.own = b.ownTrouble(ctx)
	b.explain(&w, &v, &h, fresh)
	return w, true
}

// dateSummary puts before a summary of when it is, if its facts are stale.
func dateSummary(summary string, fresh Freshness) string {
	if words := fresh.Words(); words != "" {
		return words + "; then: " + summary
	}
	return summary
}

// explain puts the facts into words and adds the estimate, which facts that are
// stale cannot give.
func (b *Broker) explain(w *Why, v *fsm.WhyView, h *hearsay, fresh Freshness) {
	w.View = v
	if able, _ := ableSites(v); able > 0 { // else it is nobody's turn
		w.Turn = turnText(v)
	}
	w.Sites = make([]SiteReason, 0, len(v.Sites))
	for i := range v.Sites {
		w.Sites = append(w.Sites, SiteReason{v.Sites[i], h.text(v, &v.Sites[i])})
	}
	w.Estimate = b.estimates.Estimate(v)
	if fresh.Stale() {
		w.Estimate = Estimate{Unknown: "the federation's state is known " + fresh.Words()}
		w.Summary = dateSummary(staleSummary(v), fresh) + h.last()
		return
	}
	w.Summary = summaryOf(v, w.Estimate) + h.last()
}

// homeWhy explains a job that only this broker knows.
func (c *core) homeWhy(num uint64) (Why, bool) {
	r, _, ok := c.ownRecord(num)
	if !ok {
		return Why{}, false
	}
	w := Why{Job: fsm.JobID{Site: c.site, Num: num}, State: r.counts.JobState().String(), Waiting: r.counts[fsm.Queued]}
	switch before := c.homeBefore(num); {
	case w.Waiting == 0:
		w.Summary = "none of its tasks waits: " + w.State
		w.Estimate.Unknown = "nothing waits for its turn"
		return w, true
	case c.home.jobs[num] == nil:
		w.Summary = c.pendingReason(c.pubs.find(num))
	case c.homeRefuses(c.home.jobs[num]):
		w.Summary = "its own site does not run it: " + c.home.jobs[num].noPlace()
	case c.full != nil:
		w.Summary = "nothing is started at this site now: " + c.full.Error()
	case c.homePaused():
		w.Summary = "nothing is started at this site now: it is drained for its own users too, leaves, or is in trouble"
	default:
		w.Summary = fmt.Sprintf("waits for room at its own site, outside the federation's queue, behind %s", plural(uint64(before), "task"))
	}
	w.Estimate.Unknown = "the job is not in the federation's queue"
	return w, true
}

// homeBefore counts the home tasks that wait before a job's first one.
func (c *core) homeBefore(num uint64) int {
	return max(0, slices.IndexFunc(c.home.waiting, func(w homeWaiting) bool { return w.num == num }))
}

// DryRun says what would become of a job if it were submitted now, and accepts
// nothing. Errors are those of a submission.
func (b *Broker) DryRun(ctx context.Context, req Request) (Why, error) {
	if full := b.disk.full(); full != nil {
		return Why{}, fmt.Errorf("ask about a job: %w", full)
	}
	fresh := b.Freshness() // before the state is read
	js := req.Spec.JobSpec(1, time.Now().UnixMilli())
	var atHome, alone, waits, idle bool
	err := b.ask(ctx, func(c *core) {
		alone = c.alone()
		waits = c.homeAlone(&js)
		atHome = c.homeOpen(&js) && len(c.home.waiting) == 0 && !c.homePaused() && c.place(&js) != nil
		idle = c.pubs.empty()
	})
	if err != nil {
		return Why{}, err
	}
	w := Why{Job: fsm.JobID{Site: b.cfg.Site}, State: fsm.Queued.String(), Waiting: js.Count, Calibration: b.estimates.Calibration()}
	var v fsm.WhyView
	var h hearsay
	var member, fits bool
	var unfit string
	var full error
	b.cfg.Replica.View(func(s *fsm.State) {
		if err = canSelect(&js, s); err != nil {
			return
		}
		v, member = s.WhySpec(b.cfg.Site, &js)
		full = quotaError(v.Refused, b.cfg.Site, &js, s)
		h = b.hear(s, &v)
		fits, unfit = s.AnyFits(js)
		idle = idle && !s.WaitingFits(b.cfg.Site)
	})
	switch {
	case err != nil:
		return Why{}, fmt.Errorf("ask about a job: %w", err)
	case req.Strict && !fits:
		return Why{}, fmt.Errorf("%w: %s", ErrUnfit, unfit)
	case atHome && (alone || idle):
		w.State = fsm.Running.String()
		w.Summary = plural(uint64(js.Count), "task") + " would start at once at this site"
		return w, nil
	case alone:
		if w.Summary = aloneReason; !waits {
			w.Summary = unpublished
		}
		w.Estimate.Unknown = "there is no quorum"
		return w, nil
	case !member:
		return Why{}, fmt.Errorf("ask about a job: %w: site %s is not registered with the federation yet", ErrNotReady, b.cfg.Site)
	}
	if err = cmp.Or(full, submitError(v.Refused)); err != nil {
		return Why{}, fmt.Errorf("ask about a job: %w", err)
	}
	h.own = b.ownTrouble(ctx)
	b.explain(&w, &v, &h, fresh)
	return w, nil
}
