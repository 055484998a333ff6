package check

import (
	"slices"
	"time"
)

// Tasks judges the marks of one job: overlaps, second starts, tokens.
func Tasks(o Ordered, id string, m Marks) []Violation {
	var out []Violation
	for i := range o.Count {
		list := m.Of(id, i)
		out = append(out, tokens(list)...)
		out = append(out, afterCancel(o, list)...)
		switch o.OnLoss {
		case Fenced:
			out = append(out, overlaps(list)...)
		case Never:
			out = append(out, twice(o, list)...)
		}
	}
	return out
}

// twice finds starts of a never task after anything but a failure that its job
// wants tried again.
func twice(o Ordered, list []Attempt) []Violation {
	for i := 1; i < len(list); i++ {
		was := list[i-1]
		if failed := was.Ended && was.Code == o.Exit && o.Exit != 0; !failed || i >= o.Tries {
			return []Violation{broken(Twice, "never task started again: %s, then %s", was, list[i])}
		}
	}
	return nil
}

// afterCancel finds attempts that were assigned after the cancel had been
// acknowledged. One assigned before may start a moment later.
func afterCancel(o Ordered, list []Attempt) []Violation {
	var out []Violation
	for _, a := range list {
		if o.Cancelled > 0 && a.Token > o.Cancelled {
			out = append(out, broken(Cancelled, "%s was started, its cancel had been acknowledged at entry %d", a, o.Cancelled))
		}
	}
	return out
}

// overlaps finds attempts that began while an earlier one, or what it left behind, still left marks.
func overlaps(list []Attempt) []Violation {
	var out []Violation
	for i, a := range list {
		for _, b := range list[i+1:] {
			if over := time.Duration(max(a.Last, a.Left) - b.Start); over >= 0 {
				out = append(out, broken(Overlap, "%s ran on for %s (at least) after %s had started", a, over.Round(time.Millisecond), b))
			}
		}
	}
	return out
}

// tokens checks that no process started under a token and attempt that another
// had, and that whoever starts later has a greater attempt and no smaller token.
// Starts of one task at different sites may come in another order only if they
// were assigned in another order; then the later token must not be the smaller.
func tokens(list []Attempt) []Violation {
	var out []Violation
	for i, a := range list {
		for _, b := range list[i+1:] {
			switch {
			case a.Attempt == b.Attempt && a.Token == b.Token:
				out = append(out, broken(TokenGrow, "started twice under one token: %s and %s", a, b))
			case (a.Attempt < b.Attempt) != (a.Token < b.Token) && a.Token != b.Token:
				out = append(out, broken(TokenGrow, "token and attempt disagree: %s and %s", a, b))
			}
		}
	}
	return out
}

// End judges the end of one job as it is shown, by the marks of honest sites. Of a task whose last attempt was a
// hostile site's it counts that it ended, not how.
func (h Honesty) End(o Ordered, shown Shown, m Marks) []Violation {
	var out []Violation
	if !isEnd(shown.State) {
		return []Violation{broken(OneEnd, "%s (%s) of %s did not end, it is %s", shown.ID, o.Name, o.Owner, shown.State)}
	}
	if len(shown.Tasks) != o.Count {
		out = append(out, broken(OneEnd, "%s (%s) shows %d tasks of %d", shown.ID, o.Name, len(shown.Tasks), o.Count))
	}
	for _, t := range shown.Tasks {
		if !isEnd(t.State) {
			out = append(out, broken(OneEnd, "%s/%d is %s in a job that is %s", shown.ID, t.Index, t.State, shown.State))
			continue
		}
		list := m.Of(shown.ID, t.Index)
		if v, bad := trueEnd(o, shown.ID, t, list); bad && !h.excuses(t, list) {
			out = append(out, v)
		}
	}
	return out
}

// excuses reports whether a task's end is a hostile site's word alone. It is not if an honest site ran that very
// attempt, whichever site is shown: its end is that one's then, though others have it moved.
func (h Honesty) excuses(t ShownTask, honest []Attempt) bool {
	return !h.Is(t.Site) && !slices.ContainsFunc(honest, t.is)
}

// maxLosses end a task that is requeued after a loss.
const maxLosses = 5

// is reports whether an attempt is the one that is shown.
func (t ShownTask) is(a Attempt) bool { return a.Attempt == t.Attempt && a.Token == t.Token }

// trueEnd compares a task's end with what its attempts did.
func trueEnd(o Ordered, id string, t ShownTask, list []Attempt) (Violation, bool) {
	where := func(format string, args ...any) (Violation, bool) {
		v := broken(TrueEnd, "%s/%d is shown %s (%s) as attempt %d token %d at %s", id, t.Index, t.State, t.Reason, t.Attempt, t.Token, t.Site)
		v.Text += ", but " + broken("", format, args...).Text
		return v, true
	}
	var last Attempt // the greatest that started
	for _, a := range list {
		if a.Attempt >= last.Attempt {
			last = a
		}
	}
	at := slices.IndexFunc(list, t.is)
	switch t.State {
	case "succeeded", "failed":
		if at < 0 {
			return where("that attempt left no marks")
		}
		a := list[at]
		code := 0
		if t.State == "failed" {
			code = o.Exit
		}
		switch {
		case t.State == "failed" && o.Exit == 0:
			return where("it never fails")
		case !a.Ended || a.Code != code:
			return where("that attempt ended %t with %d", a.Ended, a.Code)
		// of what may overlap the first success counts
		case last.Attempt > t.Attempt && (o.OnLoss != Immediate || t.State == "failed"):
			return where("%s had started by then", last)
		}
	case "cancelled":
		if !o.Cancel && !slices.Contains(o.Vain, t.Index) {
			return where("nobody cancelled it")
		}
	case "lost":
		if o.OnLoss != Never && t.Attempt < maxLosses {
			return where("it is to be tried %d times", maxLosses)
		}
	}
	return Violation{}, false
}
