package core

import (
	"math/big"
	"slices"
	"time"
)

// calm ends the disorder: everybody is there, hears everything, and every task
// that runs ends well.
func (d *disorder) calm() {
	d.t.Helper()
	for _, s := range d.sites {
		s.unheard = ""
	}
	for range 500 {
		if d.quiet() {
			return
		}
		d.pass(time.Second)
		for _, s := range d.sites {
			for len(s.pending) > 0 {
				d.orderOne(s, 0)
			}
			for len(d.mail[s]) > 0 {
				d.hearOne(s, 0)
			}
			d.obeyAt(s)
			for _, id := range s.staging() {
				s.here(id)
			}
			d.deliverAt(s)
			for _, id := range s.live() {
				d.exit(s, id, 0)
			}
			d.renewAt(s)
			s.turn(StateEvent{}, TickEvent{})
		}
	}
	for _, p := range d.jobs {
		state, counts, known := d.view(p)
		if id, answered := p.id(); answered && !slices.Contains(ends, state) {
			d.t.Fatalf("job %s never ends: %s %v, known %v", id, state, counts, known)
		}
	}
	d.t.Fatal("the federation never comes to rest")
}

// quiet reports whether all jobs have ended and nobody has anything to say.
func (d *disorder) quiet() bool {
	for _, s := range d.sites {
		if len(s.pending)+len(d.mail[s])+len(s.running)+len(s.files.staging) > 0 ||
			s.core.pubs.Opened()+s.core.pubs.Len() > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(d.jobs, func(p *promised) bool {
		if _, answered := p.id(); !answered {
			return false // its user heard nothing before the broker crashed
		}
		state, _, known := d.view(p)
		return !known || !slices.Contains(ends, state)
	})
}

// ends are the names of the states that a job stays in.
var ends = []string{"succeeded", "failed", "cancelled", "lost"}

// checkPromises looks at every acknowledged job: it has exactly one end, for a
// reason, and all its tasks are accounted for.
func (d *disorder) checkPromises() {
	d.t.Helper()
	for _, p := range d.jobs {
		id, answered := p.id()
		if !answered {
			continue
		}
		state, counts, known := d.view(p)
		var total, good uint32
		for _, end := range ends {
			total += counts[end]
		}
		for task := range p.count {
			last := d.newest[taskName{id.String(), task}]
			if d.good[taskName{id.String(), task}] {
				good++
			}
			if last.Attempt > 5+3 {
				d.t.Fatalf("task %d of job %s had %d attempts", task, id, last.Attempt)
			}
		}
		switch {
		case !known || total != p.count:
			d.t.Fatalf("job %s, known %v, has %d tasks, ended are %v", id, known, p.count, counts)
		case counts["succeeded"] > good:
			d.t.Fatalf("job %s: %d tasks succeeded, attempts of %d did", id, counts["succeeded"], good)
		case state == "cancelled" && !p.cancelled:
			d.t.Fatalf("job %s is cancelled, by nobody", id)
		case state == "failed" && !d.bad[id.String()]:
			d.t.Fatalf("job %s failed, no attempt did", id)
		}
	}
	d.checkLedger()
}

// checkLedger adds up the priorities: nobody gains what nobody loses.
func (d *disorder) checkLedger() {
	d.t.Helper()
	sum := new(big.Int)
	for _, a := range d.state.Ledger().Sites {
		v, ok := new(big.Int).SetString(a.Priority, 10)
		if !ok {
			d.t.Fatalf("priority %q of %s is no number", a.Priority, a.Site)
		}
		sum.Add(sum, v)
	}
	if sum.Sign() != 0 {
		d.t.Fatalf("the priorities sum to %s", sum)
	}
}
