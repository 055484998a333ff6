package sim

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// siteShell is what surrounds one site's broker core: a machine that runs tasks
// by the clock, and users of its own besides the federation's.
type siteShell struct {
	p      *player
	at     int // its number
	name   string
	driver *core.Driver
	cores  int64
	used   int64   // by the broker's attempts
	own    int64   // by background tasks
	shown  int64   // cores that its broker knows of
	queue  []int32 // background tasks that wait
	// jobs are the first tasks of the jobs it submitted, by number.
	jobs []int32
	// changed: its machine has changed since the state heard of it.
	changed bool
	// dirty: its core has events to settle.
	dirty bool
	// begun are attempts whose starts the federation has not heard of.
	begun []executor.ID
	// homeEnded: a home run ended, which the ledger has not heard of.
	homeEnded bool
	change    uint64 // last SiteChange it has seen
	published int    // tasks, since its proposals were ordered
	proposed  []command.Command
	conduct   Conduct
	held      []alike // tasks that it has not submitted yet
	underWay  int64   // its tasks that it submitted and that have not ended
	waits     int     // of these, those published that have not started
	// aside is what a hostile leader withholds of what the site proposed, the oldest first; passed is memory of pass.
	aside  []laidAside
	passed []command.Command
}

func newShell(p *player, i int) *siteShell {
	s := &siteShell{
		p: p, at: i, name: SiteName(i), cores: p.c.Cores[i], jobs: make([]int32, 1),
		conduct: p.c.conductOf(i),
	}
	s.driver = core.NewDriver(s.name, node.DefaultExposure(), zero)
	s.showMachine()
	return s
}

// showMachine tells the broker what its machine has for it.
func (s *siteShell) showMachine() {
	s.shown = s.room()
	s.driver.Machines([]executor.Machine{{Name: "m", Resources: executor.Resources{MilliCPU: s.shown * 1000}}})
	s.changed, s.dirty = true, true
}

// endTask frees what a task took.
func (s *siteShell) endTask(e end) {
	t := &s.p.c.Tasks[e.task]
	if t.Background {
		s.own -= t.Width
		s.changed = true
		return
	}
	s.used -= t.Width
	s.dirty = true
	s.homeEnded = s.homeEnded || s.p.atHome[e.task]
	run := time.Duration(s.p.now-s.p.out.Start[e.task]) * time.Second
	s.driver.Ended(e.id, executor.Result{Started: zero.Add(time.Duration(s.p.now)*time.Second - run), Run: run},
		&s.p.view)
}

// enqueue takes a background task.
func (s *siteShell) enqueue(task int) { s.queue = append(s.queue, int32(task)) }

// runOwn starts background tasks on what is free, before anybody else.
func (s *siteShell) runOwn() {
	for len(s.queue) > 0 {
		task := int(s.queue[0])
		width := s.p.c.Tasks[task].Width
		if width > s.cores-s.used-s.own {
			break
		}
		s.queue = s.queue[1:]
		s.own += width
		s.changed = true
		s.p.started(task, s.at, executor.ID{})
	}
	if s.changed {
		s.showMachine()
	}
}

// accept answers the core for what it started in an earlier second.
func (s *siteShell) accept() {
	for _, id := range s.begun {
		s.driver.Accepted(id, &s.p.view)
	}
}

// report has the starts of earlier seconds, and home runs that have ended, told to
// the federation before it decides again.
func (s *siteShell) report() {
	switch {
	case s.homeEnded, s.driver.Unreported() > 0:
		s.driver.Second(&s.p.view)
	case len(s.begun) > 0:
		s.driver.Tick(&s.p.view)
	default:
		return
	}
	s.begun, s.homeEnded, s.dirty = s.begun[:0], false, true
}

// submit gives the first of n alike tasks to the site's broker: the paper's event 1.
// Once one is on its way to the queue, so are all others of this second: they are
// one job then. It returns how many it gave.
//
// REQUIRES: n ≥ 1.
func (s *siteShell) submit(task, n int) int {
	t := &s.p.c.Tasks[task]
	if s.published == 0 {
		n = 1
	}
	spec := jobspec.DefaultSpec()
	spec.Command, spec.Resources.CPU, spec.Count = taskCommand, t.Width, uint32(n)
	spec.Timeout = time.Duration(t.Timeout) * time.Second
	if percent := s.conduct.Declare; percent != 0 {
		spec.Timeout = time.Duration(t.Run*percent/100) * time.Second
	}
	v := &s.p.view
	if s.p.c.Home == HomeNever {
		v.narrowest = 1 // as if something always waited
	}
	num, published := s.driver.Submit(spec, v)
	if num != uint64(len(s.jobs)) {
		panic(fmt.Sprintf("site %s numbered a job %d, want %d", s.name, num, len(s.jobs)))
	}
	s.jobs = append(s.jobs, int32(task))
	s.dirty = true
	if published {
		s.published += n
		s.waits += n
		s.p.waits += n
		if !s.p.c.Leader.mayWithhold(s.at) { // else once it stands in an entry
			v.published(t.Width, n)
		}
		return n
	}
	for i := range n {
		s.p.atHome[task+i] = true
	}
	s.p.out.Home += uint64(n)
	return n
}

// taskCommand is what every simulated task would run.
var taskCommand = []string{"sleep"}

// endTurn ends the core's turn and plays its handler.
func (s *siteShell) endTurn() {
	s.proposed = s.proposed[:0]
	if s.conduct.Boast > 0 { // it offers again what it had to decline, as every second live
		s.driver.Second(&s.p.view)
		s.dirty = true
	}
	if !s.dirty && s.p.state.SiteChange(s.name) == s.change {
		return
	}
	s.change = s.p.state.SiteChange(s.name)
	for s.dirty = true; s.dirty; {
		s.dirty = false
		o := s.driver.Settle(&s.p.view)
		s.proposed = s.allowedCommands(s.proposed, o.Propose)
		s.ask(o.Asks)
		s.start(o.Starts)
	}
}

// ask has the owners of what is assigned here give their keys, at once. They cost no time.
func (s *siteShell) ask(asks []core.KeyAsk) {
	for _, a := range asks {
		owner := s.p.view.shells[a.Owner]
		s.driver.Answered(a.Owner, owner.driver.Keys(s.name, a.Attempts, &s.p.view), &s.p.view)
		s.dirty = true
	}
}

// allowedCommands copies what is proposed, as far as the case's rules let it through.
func (s *siteShell) allowedCommands(to, cmds []command.Command) []command.Command {
	for _, cmd := range cmds {
		switch body := cmd.Body.(type) {
		case *command.Usage:
			if s.p.c.Home == HomeUnreported {
				cmd.Body = &command.Usage{Batch: body.Batch}
			}
		case *command.Offer:
			if s.p.c.WholeShare || s.conduct.Claim > 0 || s.conduct.Boast > 0 {
				cmd.Body = s.told(body)
			}
		}
		to = append(to, cmd)
	}
	return to
}

// start runs what the core wants to run.
func (s *siteShell) start(tasks []executor.Task) {
	for i := range tasks {
		id, err := command.ParseJobID(tasks[i].Job)
		if err != nil {
			panic("the core starts a job without a name: " + err.Error())
		}
		task := int(s.p.view.shells[id.Site].jobs[id.Num]) + int(tasks[i].Task)
		s.used += s.p.c.Tasks[task].Width
		if !s.p.atHome[task] {
			s.p.view.waiting[s.p.c.Tasks[task].Width]--
			s.p.sites[s.p.c.Tasks[task].Site].waits--
			s.p.waits--
		}
		s.p.started(task, s.at, tasks[i].ID)
		s.driver.Started(tasks[i].ID, &s.p.view)
		s.begun = append(s.begun, tasks[i].ID)
	}
}

// executed passes on what became of the commands it proposed.
func (s *siteShell) executed(results []command.Result) {
	s.published = 0
	if len(s.proposed) > 0 {
		s.driver.Executed(s.proposed, results, &s.p.view)
		s.dirty = true
	}
}
