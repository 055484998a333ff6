package check

import (
	"slices"
	"strings"
	"time"
)

// Wait is a job, by its id, that another one waits for.
type Wait struct{ Job, When string }

// How what is waited for is to end, as specs write it.
const (
	WhenOK    = "ok"
	WhenAny   = "any"
	WhenNotOK = "notok"
	WhenEach  = "each" // each task succeeds before the one at its place begins
)

// Flow is all jobs of a run in the end: what was asked for, what their owners show, and their marks.
type Flow struct {
	orders map[string]Ordered // by id, as what follows
	shown  map[string]Shown
	marks  Marks
}

// NewFlow returns the jobs of a run.
func NewFlow(orders []Ordered, shown []Shown, m Marks) Flow {
	f := Flow{map[string]Ordered{}, map[string]Shown{}, m}
	for _, o := range orders {
		for _, id := range o.IDs {
			f.orders[id] = o
		}
	}
	for _, s := range shown {
		f.shown[s.ID] = s
	}
	return f
}

// met says how a job that is waited for by a task has ended: over, whether it will not change any more; met, whether
// as asked; and since, by its marks, not before when: 0 = they do not tell.
func (f Flow) met(w Wait, task int) (since int64, met, over bool) {
	s, known := f.shown[w.Job]
	if !known { // it has left
		return 0, true, true
	}
	tasks, state := s.Tasks, s.State
	if w.When == WhenEach {
		i := slices.IndexFunc(tasks, func(t ShownTask) bool { return t.Index == task })
		if i < 0 {
			return 0, false, false
		}
		tasks, state = tasks[i:i+1], tasks[i].State
	}
	for _, t := range tasks {
		since = max(since, f.endOf(w.Job, t))
	}
	switch over = isEnd(state); w.When {
	case WhenAny:
		met = over
	case WhenNotOK:
		met = over && state != "succeeded"
	default:
		met = state == "succeeded"
	}
	return since, met, over
}

// endOf returns when a task has ended, by the marks of the attempt that counts. What was cancelled or lost has ended
// with all of its attempts; an immediate one may be given up while it runs.
func (f Flow) endOf(id string, t ShownTask) (at int64) {
	ran := t.State == "succeeded" || t.State == "failed"
	for _, a := range f.marks.Of(id, t.Index) {
		if ran && t.is(a) && a.Ended || !ran && f.orders[id].OnLoss != Immediate {
			at = max(at, a.Last)
		}
	}
	return at
}

// unmet returns what a task waits for that has ended otherwise than asked.
func (f Flow) unmet(o Ordered, task int) (out []Wait) {
	for _, w := range o.After {
		if _, met, over := f.met(w, task); over && !met {
			out = append(out, w)
		}
	}
	return out
}

// Vain returns the tasks of a job that can never begin: they are to be cancelled.
func (f Flow) Vain(o Ordered) (tasks []int) {
	for i := range o.Count {
		if len(f.unmet(o, i)) > 0 {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// Judge judges one job by what it waits for, how many of its tasks may run at a time, and how they are tried again.
func (f Flow) Judge(o Ordered, id string) []Violation {
	out := crowds(o, id, f.marks)
	for i := range o.Count {
		out = append(out, f.early(o, id, i)...)
	}
	for _, t := range f.shown[id].Tasks {
		out = append(out, f.vain(o, id, t)...)
		out = append(out, retries(o, id, t, f.marks.Of(id, t.Index))...)
	}
	return out
}

// early finds attempts of a task that began before what it waits for had ended as asked.
func (f Flow) early(o Ordered, id string, task int) (out []Violation) {
	for _, w := range o.After {
		since, met, _ := f.met(w, task)
		for _, a := range f.marks.Of(id, task) {
			switch by := time.Duration(since - a.Start); {
			case !met:
				out = append(out, broken(Early, "%s (%s) started, and waits for %s (%s), which is %s", a, o.Name, w.Job, w.When,
					f.shown[w.Job].State))
			case by >= 0:
				out = append(out, broken(Early, "%s (%s) started %s before %s had ended (%s)", a, o.Name,
					by.Round(time.Millisecond), w.Job, w.When))
			}
		}
	}
	return out
}

// vain finds a task that waits in vain and was not cancelled for that reason.
func (f Flow) vain(o Ordered, id string, t ShownTask) []Violation {
	list := f.unmet(o, t.Index)
	named := slices.ContainsFunc(list, func(w Wait) bool {
		return strings.Contains(t.Reason, w.Job+" ") || strings.Contains(t.Reason, w.Job+",")
	})
	if len(list) == 0 || t.State == "cancelled" && (named || o.Cancel) {
		return nil
	}
	return []Violation{broken(InVain, "%s/%d (%s) is %s (%s), and waits in vain for %v", id, t.Index, o.Name, t.State, t.Reason, list)}
}
