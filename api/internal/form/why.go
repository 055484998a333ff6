package form

import (
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// Why returns the form of why a job waits.
func Why(w *node.Why) wire.Why {
	out := wire.Why{
		Site: w.Job.Site, State: w.State, Waiting: w.Waiting, Summary: w.Summary, Turn: w.Turn,
		Priority: w.Priority, Notices: noticesOf(w.Notices), User: w.User, CancelledBy: w.CancelledBy,
		Turns: []wire.WhyTurn{}, Sites: make([]wire.WhySite, 0, len(w.Sites)), Estimate: estimateOf(w),
	}
	if w.Job.Num > 0 {
		out.ID = w.Job.String()
	}
	for i := range w.Sites {
		out.Sites = append(out.Sites, whySiteOf(&w.Sites[i]))
	}
	if v := w.View; v != nil {
		out.Ahead = &wire.WhyAhead{
			Place: 1 + v.Ahead.Own + v.Ahead.Others, Own: v.Ahead.Own, Others: v.Ahead.Others,
			CPU: float64(v.Ahead.MilliCPU) / 1000, Sites: v.Ahead.Sites, Exact: v.Ahead.Exact,
		}
		for i := range v.Turns {
			out.Turns = append(out.Turns, whyTurnOf(&v.Turns[i]))
		}
	}
	return out
}

func whyTurnOf(t *fsm.TurnView) wire.WhyTurn {
	out := wire.WhyTurn{
		Site: t.Site, Place: t.Place, Waiting: t.Waiting, OldestMs: t.OldestMs, Contribution: t.Contribution,
		Utility: t.Utility, Priority: t.Priority, Usage: t.Usage, Share: float64(t.Share) / 1000, Excess: t.Excess,
		Tied: t.Tied,
	}
	if t.Chosen {
		out.StartsAgo = &t.StartsAgo
	}
	return out
}

func whySiteOf(x *node.SiteReason) wire.WhySite {
	out := wire.WhySite{
		Site: x.Site, Why: x.Why.String(), Text: x.Text, Machines: x.Machines, Slots: x.Slots, Machine: x.Machine,
		Short: Resources(x.Short), Lacks: x.Lacks, Near: x.Near,
	}
	if x.First.Num > 0 {
		out.First = x.First.String()
	}
	return out
}

func estimateOf(w *node.Why) wire.WhyEstimate {
	e := wire.WhyEstimate{
		Unknown: w.Estimate.Unknown, Waits: w.Estimate.Waits, Calibrated: w.Estimate.Calibrated,
		Starts: w.Calibration.Starts,
	}
	if e.Unknown == "" {
		e.P50, e.P90 = seconds(w.Estimate.P50), seconds(w.Estimate.P90)
	}
	e.Held = heldOf(w.Calibration)
	return e
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// heldOf returns what part of the judged estimates held, nil without any.
func heldOf(c node.Calibration) *float64 {
	if c.Starts == 0 {
		return nil
	}
	held := float64(c.Held) / float64(c.Starts)
	return &held
}
