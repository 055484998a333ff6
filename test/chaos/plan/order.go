package plan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Order is one request of a client, under one idempotency key.
type Order struct {
	At   time.Duration
	Site int // addressed, from 1
	Key  string
	Jobs []Job // several: one NDJSON request
	// Again repeats the acknowledged request under its key.
	Again bool
	// CancelAfter its acknowledgement a job is cancelled, the first one unless CancelJob says another; 0 = not.
	CancelAfter time.Duration
	CancelJob   int
	// HoldAfter its acknowledgement job HoldJob is held by hand, for HoldFor; 0 = not.
	HoldAfter, HoldFor time.Duration
	HoldJob            int
}

// Job is one job of an order; no two have the same name.
type Job struct {
	Name     string
	Count    int
	Length   time.Duration // of each task
	OnLoss   string
	Home     bool // may run at its owner's only
	Stubborn bool // its tasks do not end at TERM
	// Hostile ones attack whatever they reach, and leave processes behind that fork for as long as they live. They run
	// at other sites only, in sandboxes.
	Hostile bool
	// Files: its tasks take a file of their owner's, and leave one that says which attempt left it.
	Files bool
	Exit  int
	Tries int // max_attempts
	// FailTask is the only task that exits with Exit, from 1; 0 = all do.
	FailTask int
	// First is how long attempt 1 runs until it exits with Exit; later ones run
	// Length and exit with 0. 0 = all attempts are alike.
	First time.Duration
	// After are jobs that it waits for.
	After    []Wait
	Parallel int           // tasks that may run at a time; 0 = all
	Backoff  time.Duration // between a failure and the next attempt
	OnlyOn   int           // the only exit code after which a task is tried again; 0 = all are

	// Scenarios, which are written and not drawn, say more.

	Sites []int // may run at these only, from 1; nil = anywhere
	Env   int   // bytes of environment
}

// String returns one line, without the time.
func (o Order) String() string {
	s := fmt.Sprintf("order %s at site-%d:", o.Key, o.Site)
	for _, j := range o.Jobs {
		s += " " + j.String()
	}
	if o.Again {
		s += " again"
	}
	if o.CancelAfter > 0 {
		s += " cancel " + o.Jobs[o.CancelJob].Name + " after " + seconds(o.CancelAfter)
	}
	if o.HoldFor > 0 {
		s += fmt.Sprintf(" hold %s after %s for %s", o.Jobs[o.HoldJob].Name, seconds(o.HoldAfter), seconds(o.HoldFor))
	}
	return s
}

// String returns a few words.
func (j Job) String() string {
	s := fmt.Sprintf("[%d×%s %s", j.Count, seconds(j.Length), j.OnLoss)
	if j.Home {
		s += " home"
	}
	if j.Stubborn {
		s += " stubborn"
	}
	if j.Hostile {
		s += " hostile"
	}
	if j.Files {
		s += " files"
	}
	if j.Exit != 0 {
		s += fmt.Sprintf(" exit %d of %d", j.Exit, j.Tries)
	}
	return s + j.gates() + "]"
}

// gates returns a few words about what its tasks wait for.
func (j Job) gates() (s string) {
	for _, w := range j.After {
		s += " after " + w.Job + ":" + w.When
	}
	if j.Parallel > 0 {
		s += fmt.Sprintf(" parallel %d", j.Parallel)
	}
	if j.Backoff > 0 {
		s += " backoff " + seconds(j.Backoff)
	}
	if j.OnlyOn > 0 {
		s += fmt.Sprintf(" only on %d", j.OnlyOn)
	}
	return s
}

// orderGap is the mean time between two orders at one site: it keeps two cores
// of each site about three quarters busy.
const orderGap = 4 * time.Second

func orders(r *rand.Rand, size Size) []Order {
	var out []Order
	gap := orderGap / time.Duration(size.Sites)
	earlier := make([]string, size.Sites+1) // by site: the first job of its last order
	for at := between(r, 0, gap); at < size.Length; at += between(r, gap/4, gap*7/4) {
		site := 1 + r.IntN(size.Sites)
		o := order(r, at, site, fmt.Sprintf("k%d", len(out)+1), earlier[site])
		earlier[site] = o.Jobs[0].Name
		out = append(out, o)
	}
	return out
}

func order(r *rand.Rand, at time.Duration, site int, key, earlier string) Order {
	o := Order{At: at, Site: site, Key: key, Again: r.IntN(5) == 0}
	switch pick(r, 38, 22, 15, 25) {
	case 3:
		flow(r, &o, earlier)
		return o
	case 0:
		o.Jobs = []Job{job(r, key, 1)}
	case 1:
		o.Jobs = []Job{job(r, key, 3+r.IntN(6))}
	default:
		for i := range 2 + r.IntN(4) {
			o.Jobs = append(o.Jobs, job(r, fmt.Sprintf("%s.%d", key, i+1), 1))
		}
	}
	if r.IntN(6) == 0 {
		o.CancelAfter = between(r, 50*time.Millisecond, 4*time.Second)
	}
	return o
}

func job(r *rand.Rand, name string, count int) Job {
	j := Job{Name: name, Count: count, Tries: 1, Length: between(r, 200*time.Millisecond, 3500*time.Millisecond)}
	if r.IntN(6) == 0 { // long enough to be met by a lease that ends
		j.Length = between(r, 6*time.Second, 12*time.Second)
		j.Count = min(j.Count, 3)
	}
	j.OnLoss = []string{"fenced", "immediate", "never"}[pick(r, 60, 20, 20)]
	j.Home = r.IntN(8) == 0
	j.Stubborn = r.IntN(4) == 0
	if r.IntN(8) == 0 {
		j.Exit, j.Tries = 7, 1+r.IntN(2)
	}
	j.Hostile = !j.Home && r.IntN(4) == 0
	j.Files = !j.Hostile && r.IntN(3) == 0
	return j
}
