package plan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Wait is a job of the same site, by its name, that another one waits for, until it has ended as When says: ok, any,
// notok, or each. A name that no order has is an id.
type Wait struct{ Job, When string }

// Gated reports whether a job's tasks are let go one by one.
func (j Job) Gated() bool {
	for _, w := range j.After {
		if w.When == "each" {
			return true
		}
	}
	return j.Parallel > 0 || j.Backoff > 0 || j.OnlyOn > 0
}

// flow draws jobs that wait for each other, and now and then for an earlier one, or for their turn.
func flow(r *rand.Rand, o *Order, earlier string) {
	switch pick(r, 35, 20, 25, 20) {
	case 0:
		o.Jobs = chain(r, o.Key, earlier)
	case 1:
		o.Jobs = fan(r, o.Key)
	case 2:
		o.Jobs = sweep(r, o.Key)
	default:
		o.Jobs = []Job{gated(r, brief(r, o.Key, 3+r.IntN(4)))}
	}
	if r.IntN(5) == 0 {
		o.CancelAfter, o.CancelJob = between(r, 50*time.Millisecond, 3*time.Second), r.IntN(len(o.Jobs))
	}
	for i, j := range o.Jobs {
		if j.Gated() && r.IntN(3) == 0 {
			o.HoldJob, o.HoldAfter = i, between(r, 10*time.Millisecond, time.Second)
			o.HoldFor = between(r, 500*time.Millisecond, 4*time.Second)
		}
	}
}

// chain is jobs each of which waits for the one before, some of which are let go task by task.
func chain(r *rand.Rand, key, earlier string) (jobs []Job) {
	for i := range 3 + r.IntN(2) {
		j := brief(r, fmt.Sprintf("%s.%d", key, i+1), 1)
		if r.IntN(4) == 0 {
			j.Count = 2
			j = gated(r, j)
		}
		switch {
		case i > 0:
			j.After = []Wait{{jobs[i-1].Name, []string{"ok", "any", "notok"}[pick(r, 70, 15, 15)]}}
		case earlier != "" && r.IntN(2) == 0:
			j.After = []Wait{{earlier, []string{"ok", "any"}[r.IntN(2)]}}
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// fan is a job that several wait for, for all of which another one waits.
func fan(r *rand.Rand, key string) []Job {
	jobs := []Job{brief(r, key+".1", 1)}
	join := brief(r, key+".join", 1)
	when := []string{"ok", "any"}[r.IntN(2)]
	for i := range 3 + r.IntN(3) {
		j := brief(r, fmt.Sprintf("%s.%d", key, i+2), 1)
		j.After = []Wait{{jobs[0].Name, "ok"}}
		join.After = append(join.After, Wait{j.Name, when})
		jobs = append(jobs, j)
	}
	return append(jobs, join)
}

// sweep is arrays whose tasks wait for each other one by one, one task of the first of which may fail.
func sweep(r *rand.Rand, key string) []Job {
	n := 2 + r.IntN(3)
	first, second, third := brief(r, key+".1", n), brief(r, key+".2", n), brief(r, key+".3", n)
	if first.Exit > 0 || r.IntN(2) == 0 {
		first.Exit, first.FailTask = 7, 1+r.IntN(n)
	}
	second = gated(r, second)
	second.After = []Wait{{first.Name, "each"}}
	third.After = []Wait{{second.Name, "each"}, {first.Name, "any"}}
	if r.IntN(2) == 0 {
		third.Count, third.After = 1, []Wait{{second.Name, "any"}}
	}
	return []Job{first, second, third}
}

// brief is a short job: several of them one after the other must end in time.
func brief(r *rand.Rand, name string, count int) Job {
	j := Job{Name: name, Count: count, Tries: 1, Length: between(r, 50*time.Millisecond, 700*time.Millisecond)}
	j.OnLoss = []string{"fenced", "immediate", "never"}[pick(r, 60, 20, 20)]
	j.Home = r.IntN(8) == 0
	if r.IntN(7) == 0 {
		j.Exit = 7
	}
	return j
}

// gated bounds how many tasks of a job run at a time, and has it fail and be tried again after a pause.
func gated(r *rand.Rand, j Job) Job {
	j.Parallel = 1 + r.IntN(3)
	if r.IntN(2) > 0 {
		return j
	}
	j.Exit, j.Tries, j.Backoff = 7, 2+r.IntN(2), between(r, 200*time.Millisecond, 900*time.Millisecond)
	j.OnlyOn = []int{0, 7, 8}[pick(r, 40, 40, 20)]
	if r.IntN(2) == 0 {
		j.First = j.Length // the first attempt alone fails
	}
	return j
}
