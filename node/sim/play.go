package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/sched"
)

// Nowhere is the executor of a task that did not start.
const Nowhere = -1

// Outcome is where and when every task of a case ran.
type Outcome struct {
	Start []int64 // seconds, by task; −1 = never
	Site  []int   // executor, by task
	// Order holds the tasks as they started.
	Order []int32
	// Entries, Decisions and Home count the log's entries, the state machine's
	// assignments, and the tasks that started at home outside the queue.
	Entries, Decisions, Home uint64
	// Withheld counts the commands that a hostile leader withheld for some time.
	Withheld uint64
	// Hash is the state's at the end.
	Hash [32]byte
}

// Waits sums what the federation's tasks waited, by owner, in seconds.
func (o *Outcome) Waits(c *Case) []int64 {
	waits := make([]int64, len(c.Cores))
	for i := range c.Tasks {
		if t := &c.Tasks[i]; !t.Background {
			waits[t.Site] += o.Start[i] - t.Release
		}
	}
	return waits
}

// player is one run: what a federation's shells would do, in one goroutine.
//
// At each second that something happens: tasks end; machines' own users take
// what they wait for; tasks arrive one by one, each by event 1 of the paper; then
// one entry is ordered with all that the brokers propose, and the state machine
// matches once. What follows from it (none here, for equal tasks) is ordered in
// more entries of the same second.
type player struct {
	c     *Case
	state *fsm.State
	log   *order
	view  view
	sites []*siteShell
	turns []int // sites, as their proposals stand in an entry
	// aside are the sites, by bit, whose proposals a grinding leader lays aside in the next entry.
	aside uint64
	ends  endQueue
	now   int64
	next  int // of c.Tasks
	open  int // tasks that have not ended
	// atOnce is how many tasks a site publishes before they are ordered.
	atOnce int
	// atHome are the tasks that started at home, outside the queue.
	atHome []bool
	waits  int     // tasks published that have not started
	points []int64 // seconds at which a site comes or goes
	out    Outcome
}

// zero is the date on which all simulations begin; nothing depends on it.
var zero = time.Unix(946_684_800, 0).UTC()

// Play runs a case to its end. The same case gives the same outcome, whatever
// else the machine does.
func Play(c *Case) (*Outcome, error) { return PlayContext(context.Background(), c) }

// PlayContext returns Play, and ends with ctx.
func PlayContext(ctx context.Context, c *Case) (*Outcome, error) { return play(ctx, c, fsm.New()) }

// play runs a case; the first state is the one that brokers read, further ones are
// replicas of their sites' own.
func play(ctx context.Context, c *Case, states ...*fsm.State) (*Outcome, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p, err := newPlayer(c, states...)
	if err != nil {
		return nil, err
	}
	return p.run(ctx)
}

// run plays from the genesis to the last task's end.
func (p *player) run(ctx context.Context) (*Outcome, error) {
	if err := p.found(); err != nil {
		return nil, err
	}
	for p.open > 0 || p.withholds() {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("at second %d: %w", p.now, context.Cause(ctx))
		}
		t, ok := p.nextSecond()
		if !ok {
			return nil, fmt.Errorf("%w: %d tasks are left at second %d", ErrStuck, p.open, p.now)
		}
		if err := p.second(ctx, t); err != nil {
			return nil, err
		}
	}
	return p.finish(), nil
}

func newPlayer(c *Case, states ...*fsm.State) (*player, error) {
	p := &player{
		c: c, state: states[0], open: len(c.Tasks), atOnce: maxAtOnce, points: c.turningPoints(), turns: c.sequence(),
	}
	var err error
	if p.log, err = newOrder(len(c.Cores), func() int64 { return p.now * 1000 }, states...); err != nil {
		return nil, err
	}
	p.view = view{State: p.state, shells: map[string]*siteShell{}, waiting: map[int64]int{}}
	p.out.Start, p.out.Site = make([]int64, len(c.Tasks)), make([]int, len(c.Tasks))
	p.atHome = make([]bool, len(c.Tasks))
	for i := range p.out.Start {
		p.out.Start[i], p.out.Site[i] = -1, Nowhere
	}
	for i := range c.Cores {
		s := newShell(p, i)
		p.sites = append(p.sites, s)
		p.view.shells[s.name] = s
	}
	return p, nil
}

// found orders the genesis and every site's registration, and their first offers.
func (p *player) found() error {
	params := p.c.Params
	params.QuantumMs = 1000
	p.log.propose(0, []command.Command{{ID: command.ID{Site: SiteName(0)}, Body: &command.Genesis{
		Federation: [16]byte{1}, CreatedMs: zero.UnixMilli(), Seed: p.c.Seed, Params: params,
	}}})
	for i := range p.sites {
		p.log.propose(i, []command.Command{{ID: command.ID{Site: SiteName(i)}, Body: &command.Register{
			Node: [16]byte{byte(i + 1)}, Boot: [16]byte{byte(i + 1)}, MaxVersion: fsm.Version,
		}}})
	}
	results, err := p.entry()
	if err != nil {
		return err
	}
	for i, s := range p.sites {
		s.driver.Registered(results[i+1], &p.view)
		s.dirty = true
	}
	if err := p.order(); err != nil {
		return err
	}
	if got := p.state.Params().Policy; got != params.Policy {
		return fmt.Errorf("%w: the federation goes by %s, not by %s", ErrBadCase, got, params.Policy)
	}
	return nil
}

// nextSecond returns when the next task arrives or ends, a broker's clock reports the
// home runs that its last batch had no room for, or what was withheld is ordered.
func (p *player) nextSecond() (int64, bool) {
	t := p.nextRelease()
	if p.next < len(p.c.Tasks) {
		t = min(t, p.c.Tasks[p.next].Release)
	}
	if !p.ends.empty() {
		t = min(t, p.ends.at())
	}
	if len(p.points) > 0 {
		t = min(t, p.points[0])
	}
	if slices.ContainsFunc(p.sites, func(s *siteShell) bool { return s.driver.Unreported() > 0 }) {
		t = min(t, p.now+1)
	}
	return t, t != math.MaxInt64
}

// second plays everything that happens at second t.
func (p *player) second(ctx context.Context, t int64) error {
	if err := p.advance(ctx, t); err != nil {
		return err
	}
	for _, s := range p.sites {
		s.comeOut()
		s.accept()
	}
	for !p.ends.empty() && p.ends.at() == t {
		e := p.ends.pop()
		p.sites[e.site].endTask(e)
		p.sites[p.c.Tasks[e.task].Site].gotBack(e.task)
		p.open--
	}
	for len(p.points) > 0 && p.points[0] <= t {
		p.points = p.points[1:]
	}
	from := p.next
	for p.next < len(p.c.Tasks) && p.c.Tasks[p.next].Release == t {
		if task := &p.c.Tasks[p.next]; task.Background {
			p.sites[task.Site].enqueue(p.next)
		}
		p.next++
	}
	for _, s := range p.sites {
		s.runOwn()
		s.report()
		s.refreshOffer()
		s.release()
	}
	for n := 0; from < p.next; from += n {
		s := p.sites[p.c.Tasks[from].Site]
		n = min(p.alike(from), max(1, p.atOnce-s.published))
		if p.c.Tasks[from].Background {
			continue
		}
		s.arrive(from, n)
		if s.published >= p.atOnce {
			if err := p.order(); err != nil {
				return err
			}
		}
	}
	for _, s := range p.sites {
		s.refreshOffer()
	}
	return p.order()
}

// alike are n tasks in a row, the first one's number given, that differ by their
// index only. Those that a site publishes are one job.
type alike struct{ task, n int }

// alike counts the tasks from the i-th on that are alike and have arrived.
func (p *player) alike(i int) int {
	first, to := p.c.Tasks[i], i+1
	for ; to < p.next; to++ {
		t := p.c.Tasks[to]
		if t.Index = first.Index; t != first {
			break
		}
	}
	return to - i
}

// maxAtOnce is below what a broker has on its way to the federation at most (some
// 300,000 small jobs, 256 MiB): beyond it would refuse them. So a larger burst is
// ordered in several entries of its second.
const maxAtOnce = 200_000

// advance moves the clocks. Log time moves by a bounded step in one entry, so
// that a longer pause takes idle ticks, as it does live.
func (p *player) advance(ctx context.Context, t int64) error {
	if t > sched.MaxNow/1000 {
		return fmt.Errorf("%w: the work lasts until second %d, log time ends at %d: take a shorter period or more cores", ErrBadCase, t, int64(sched.MaxNow/1000))
	}
	for t*1000-p.state.Time() > command.MaxStep {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.now = p.state.Time()/1000 + command.MaxStep/1000
		if _, err := p.entry(); err != nil {
			return err
		}
	}
	p.now = t
	for _, s := range p.sites {
		s.driver.At(time.Duration(t) * time.Second)
	}
	return nil
}

// order settles the brokers' turns and orders what they propose, until nothing
// is proposed any more.
func (p *player) order() error {
	for {
		if err := p.endTurns(); err != nil {
			return err
		}
		if len(p.log.calls) == 0 {
			return nil
		}
		results, err := p.entry()
		if err != nil {
			return err
		}
		p.view.ordered()
		for _, i := range p.turns {
			s := p.sites[i]
			n := len(s.proposed)
			s.executed(results[:n])
			results = results[n:]
		}
	}
}

// endTurns has the brokers propose, and the leader order what is ordered now.
func (p *player) endTurns() error {
	grinds := p.c.Leader != nil && p.c.Leader.Variants > 0
	if grinds { // it sees all proposals first
		for _, i := range p.turns {
			p.sites[i].endTurn()
		}
		if err := p.grind(); err != nil {
			return err
		}
	}
	for _, i := range p.turns {
		s := p.sites[i]
		if !grinds {
			s.endTurn()
		}
		s.pass()
		p.log.propose(i, s.proposed)
	}
	return nil
}

func (p *player) entry() ([]command.Result, error) {
	results, err := p.log.entry()
	if err != nil {
		return nil, fmt.Errorf("second %d: %w", p.now, err)
	}
	return results, nil
}

// started notes a task's start and when it will end.
func (p *player) started(task, site int, id executor.ID) {
	p.out.Start[task], p.out.Site[task] = p.now, site
	p.out.Order = append(p.out.Order, int32(task))
	p.ends.push(end{
		at: p.now + p.c.Tasks[task].Run + p.lag(task, site), n: len(p.out.Order), task: task, site: site,
		id: id,
	})
}

func (p *player) finish() *Outcome {
	p.out.Entries, p.out.Decisions = p.state.Index(), p.state.Stats().Decisions
	snapshot := p.state.Snapshot()
	defer snapshot.Release()
	p.out.Hash = snapshot.Hash()
	return &p.out
}

// view is the state as brokers read it: with what was published in this second
// and stands in the next entry.
type view struct {
	*fsm.State
	shells map[string]*siteShell
	// narrowest is the width of the narrowest task published in this second, 0 =
	// none: it waits already, in the sense of event 1.
	narrowest int64
	// waiting counts what is published and has not started, by width.
	waiting map[int64]int
}

var _ core.StateReader = (*view)(nil)

// WaitingFits reports whether a task waits that the site could run on what its own
// users leave it now; the state's offer may be older than that.
func (v *view) WaitingFits(site string) bool {
	s := v.shells[site]
	room := s.cores - s.own
	if v.narrowest > 0 && v.narrowest <= room {
		return true
	}
	if s.changed {
		return v.waitsWithin(room)
	}
	return v.State.WaitingFits(site)
}

// waitsWithin reports whether a task of at most that width waits.
func (v *view) waitsWithin(room int64) bool {
	for width, n := range v.waiting { // any will do
		if n > 0 && width <= room {
			return true
		}
	}
	return false
}

func (v *view) published(width int64, n int) {
	v.waiting[width] += n
	if v.narrowest == 0 || width < v.narrowest {
		v.narrowest = width
	}
}

// ordered: the state has everything now.
func (v *view) ordered() {
	v.narrowest = 0
	for _, s := range v.shells {
		s.changed = false
	}
}
