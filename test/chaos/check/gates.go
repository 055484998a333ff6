package check

import (
	"slices"
	"strings"
	"time"
)

// crowds finds moments at which more tasks of a job ran than may at a time. Of what may run on when it was given up,
// by its owner's wish, nothing is promised to those who see processes.
func crowds(o Ordered, id string, m Marks) []Violation {
	if o.Parallel == 0 || o.OnLoss == Immediate {
		return nil
	}
	var all []Attempt
	for i := range o.Count {
		all = append(all, m.Of(id, i)...)
	}
	for _, a := range all {
		absent := func(b Attempt) bool { return b.Start > a.Start || b.Last < a.Start }
		run := slices.DeleteFunc(slices.Clone(all), absent)
		if len(run) > o.Parallel {
			return []Violation{broken(Parallel, "%d tasks of %s (%s) ran at once, %d may: %v", len(run), id, o.Name, o.Parallel, run)}
		}
	}
	return nil
}

// cut is by how much a pause may seem shorter by the marks: log time is cut to milliseconds, and read by another clock
// in between.
const cut = 50 * time.Millisecond

// leastPart of a pause is kept: the rest is drawn.
const leastPart = 0.75

// retries finds a task that was tried again too early, or for the wrong reason. Only of one that has failed for good,
// with no more failed attempts than it had, is it known that all of them were failures to those who tried it again: of
// what ends as its site is lost nobody hears.
func retries(o Ordered, id string, t ShownTask, list []Attempt) (out []Violation) {
	failed := slices.DeleteFunc(slices.Clone(list), func(a Attempt) bool { return !a.Ended || a.Code != o.Exit })
	if t.State != "failed" || o.Exit == 0 || len(failed) != o.Tries {
		return nil
	}
	if o.Barred && !strings.Contains(t.Reason, "only_on") {
		out = append(out, broken(Retries, "%s/%d (%s) has failed (%s), not for its exit code", id, t.Index, o.Name, t.Reason))
	}
	pause := o.Backoff
	for _, was := range failed[:len(failed)-1] {
		next := list[slices.IndexFunc(list, func(a Attempt) bool { return a.Start > was.Last })]
		least := time.Duration(leastPart*float64(pause)) - cut
		if rest := time.Duration(next.Start - was.Last); rest < least {
			out = append(out, broken(Retries, "%s started %s after %s had failed, want %s at least", next,
				rest.Round(time.Millisecond), was, least))
		}
		pause *= 2
	}
	return out
}
