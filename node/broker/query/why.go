package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/explain"
)

// Why says why a job waits: what goes first, what keeps each site from running
// it, and when it will probably start. A job that the federation knows is
// explained by any broker, a home job by its owner's.
func (rd *Reader) Why(ctx context.Context, id command.JobID) (node.Why, error) {
	fresh := rd.freshness() // before the state is read
	for range 2 {           // a job may be published between the two looks
		if w, ok := rd.federationWhy(ctx, id, fresh); ok {
			return w, nil
		}
		if id.Site != rd.site {
			return node.Why{}, rd.Elsewhere(id.Site, "owner")
		}
		var w node.Why
		found := false
		if err := rd.query(ctx, func(c *core.Core) { w, found = c.Own().Why(id.Num) }); err != nil {
			return node.Why{}, err
		}
		if found {
			if why := rd.progress.resultWhy(id); why != "" && w.Waiting == 0 {
				w.Summary += "; " + why
			}
			w.Calibration = rd.estimates.Calibration()
			return w, nil
		}
	}
	return node.Why{}, rd.missing("job " + id.String())
}

func (rd *Reader) federationWhy(ctx context.Context, id command.JobID, fresh node.Freshness) (w node.Why, ok bool) {
	var v fsm.WhyView
	var h explain.SiteReports
	rd.replica.View(func(s *fsm.State) {
		v, ok = s.Why(id)
		h = rd.collectReports(s, &v)
	})
	if !ok {
		return node.Why{}, false
	}
	w = node.Why{
		Job: id, State: v.State.String(), Waiting: v.Waiting, Priority: v.Priority,
		Calibration: rd.estimates.Calibration(),
	}
	if v.Waiting == 0 {
		switch w.Summary = "none of its tasks waits: " + w.State; {
		case v.State == fsm.Withdrawn:
			w.Summary = fmt.Sprintf("its tasks wait for its owner %s, which is away", id.Site)
		case v.Held > 0:
			w.Summary = heldSummary(rd.heldWords(ctx, id, v.Held), &v)
			w.Estimate.Unknown = "its tasks are held"
			return w, true
		case v.Delivering > 0:
			w.Summary += "; " + v.DeliveringWhy
		default:
			if why := rd.progress.resultWhy(id); why != "" {
				w.Summary += "; " + why
			}
		}
		if what := rd.preparing(ctx, id); what != "" {
			w.Summary += "; " + what
		}
		w.Estimate.Unknown = "nothing waits for its turn"
		w.Summary = explain.DateSummary(w.Summary, fresh)
		return w, true
	}
	h.Own = rd.ownTrouble(ctx)
	w.Estimate = rd.estimates.Estimate(&v)
	explain.Fill(&w, &v, &h, fresh)
	if v.Held > 0 {
		w.Summary += "; " + rd.heldWords(ctx, id, v.Held)
	}
	return w, true
}

// heldSummary explains a job of which tasks are held and none waits. The outputs of others may be on their way.
func heldSummary(held string, v *fsm.WhyView) string {
	if v.Delivering > 0 {
		held += "; " + v.DeliveringWhy
	}
	return held
}

// heldWords says why tasks of a job are held: its owner's broker knows.
func (rd *Reader) heldWords(ctx context.Context, id command.JobID, held uint32) (words string) {
	if id.Site == rd.site {
		soon, cancel := context.WithTimeout(ctx, ownPatience)
		defer cancel()
		// else it may still be written to
		why := ""
		if rd.query(soon, func(c *core.Core) { why = c.Gates(id.Num) }) == nil {
			words = why
		}
	}
	return cmp.Or(words, fmt.Sprintf("tasks held: %d, until the broker of %s releases them", held, id.Site))
}

// PriorityWords says what priority a job of this site is to have that it has not yet, "" if there is none.
func (rd *Reader) PriorityWords(ctx context.Context, num uint64) (words string) {
	soon, cancel := context.WithTimeout(ctx, ownPatience)
	defer cancel()
	to := "" // words may not be written to once the time is over
	if rd.query(soon, func(c *core.Core) { to = c.Priority(num) }) == nil {
		words = to
	}
	return words
}

// maxPreparing bounds the tasks that are looked at for what is done before they start.
const maxPreparing = 50

// preparing says what is done before a job's assigned tasks start: of one of them, and of how many something is known.
func (rd *Reader) preparing(ctx context.Context, id command.JobID) string {
	q := node.TaskQuery{States: fsm.TaskStates(0).With(fsm.Assigned), Limit: maxPreparing}
	tasks, _, err := rd.FindTasks(ctx, id, q)
	if err != nil {
		return ""
	}
	tasks = slices.DeleteFunc(tasks, func(t node.Task) bool { return t.Reason == "" })
	switch len(tasks) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("task %d at %s: %s", tasks[0].Index, tasks[0].Site, tasks[0].Reason)
	}
	return fmt.Sprintf("%d tasks do not run yet, as task %d at %s: %s", len(tasks), tasks[0].Index, tasks[0].Site,
		tasks[0].Reason)
}

// DryRun says what would become of a job if it were submitted now, and accepts
// nothing. Errors are those of a submission.
func (rd *Reader) DryRun(ctx context.Context, req node.Request) (node.Why, error) {
	if full := rd.full(); full != nil {
		return node.Why{}, fmt.Errorf("ask about a job: %w", full)
	}
	fresh := rd.freshness() // before the state is read
	js := req.Spec.JobSpec(rd.site, 1, time.Now().UnixMilli(), rd.sealer)
	var home core.Outlook
	err := rd.query(ctx, func(c *core.Core) { home = c.Outlook(&js) })
	if err != nil {
		return node.Why{}, err
	}
	w := node.Why{
		Job: command.JobID{Site: rd.site}, State: fsm.Queued.String(), Waiting: js.Count, Priority: js.Priority,
		Calibration: rd.estimates.Calibration(),
	}
	var v fsm.WhyView
	var h explain.SiteReports
	var member, fits bool
	var unfit string
	var full error
	rd.replica.View(func(s *fsm.State) {
		v, member = s.WhySpec(rd.site, &js)
		full = node.RefusedByQuota(v.Refused, rd.site, &js, s)
		h = rd.collectReports(s, &v)
		fits, unfit = s.AnyFits(js)
		home.Idle = home.Idle && !s.WaitingFits(rd.site)
		err = core.AdmitGates(&js, s.Version())
	})
	switch {
	case err != nil:
		return node.Why{}, fmt.Errorf("ask about a job: %w", err)
	case req.Strict && !fits:
		return node.Why{}, fmt.Errorf("%w: %s", node.ErrUnfit, unfit)
	case home.Starts && (home.Alone || home.Idle):
		w.State = fsm.Running.String()
		w.Summary = explain.Plural(uint64(js.Count), "task") + " would start at once at this site"
		return w, nil
	case home.Alone:
		if w.Summary = core.AloneReason; !home.Waits {
			w.Summary = publish.Unpublished
		}
		w.Estimate.Unknown = "there is no quorum"
		return w, nil
	case !member:
		return node.Why{}, fmt.Errorf("ask about a job: %w: site %s is not registered with the federation yet", node.ErrNotReady, rd.site)
	}
	if err = cmp.Or(full, publish.SubmitError(v.Refused)); err != nil {
		return node.Why{}, fmt.Errorf("ask about a job: %w", err)
	}
	h.Own = rd.ownTrouble(ctx)
	w.Estimate = rd.estimates.Estimate(&v)
	explain.Fill(&w, &v, &h, fresh)
	if js.Gated {
		w.Summary = "its tasks are held, and released one by one as its rules say; then: " + w.Summary
	}
	return w, nil
}

// ownPatience is how long an answer that needs no more than the state waits for what
// the core adds to it: that may stand still, as when a disk hangs.
const ownPatience = time.Second

// ownTrouble asks the core and the handlers.
func (rd *Reader) ownTrouble(ctx context.Context) explain.OwnTrouble {
	ctx, cancel := context.WithTimeout(ctx, ownPatience)
	defer cancel()
	o := explain.OwnTrouble{Site: rd.site}
	closed := ""
	// else it may still be written to
	if rd.query(ctx, func(c *core.Core) { closed = explain.ClosedText(c.ClosedWhy()) }) == nil {
		o.Closed = closed
	}
	var away []string
	for _, h := range rd.handlers {
		if len(h.Capacity()) == 0 {
			away = append(away, fmt.Sprintf("%s has no machine now: %s", h.Name(), h.Status()))
		}
	}
	o.Away = command.Clip(strings.Join(away, "; "))
	return o
}

// collectReports gathers what is said of a job's sites. REQUIRES: called inside Replica.View.
func (rd *Reader) collectReports(s *fsm.State, v *fsm.WhyView) explain.SiteReports {
	h := explain.SiteReports{
		Declined: rd.replica.Feed().Declined(v.Job), Bare: map[string]bool{},
		Closed: map[string]command.Closure{},
	}
	for i := range v.Sites {
		if x := &v.Sites[i]; x.Why == fsm.HinderedClosed {
			site, _ := s.Site(x.Site)
			h.Bare[x.Site], h.Closed[x.Site] = site.Capacity == command.Resources{}, site.Closed
		}
	}
	return h
}
