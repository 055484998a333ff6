package fsm

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// The oracle decides as theory.md §2 reads, by examining every machine and every job each time: no queues, heaps,
// weights, rest, or cached ranks.

// oracleRuns says which kinds of machines run tasks without and with an image.
var oracleRuns = map[command.Runs]map[bool]bool{
	command.RunsCommands: {false: true}, command.RunsImages: {true: true}, command.RunsBoth: {false: true, true: true},
}

// oracleSelector parses one selector; oracleSelects reports whether a machine satisfies it.
var oracleSelector = regexp.MustCompile(`^(!?)([^!=( ]+)(?:(!?)=(.*)| (not)?in \((.*)\))?$`)

func oracleSelects(m *machine, selectors []string) bool {
	labels := map[string]string{}
	for _, pair := range strings.FieldsFunc(string(m.labels.text()), func(r rune) bool { return r == ',' }) {
		k, v, _ := strings.Cut(pair, "=")
		labels[k] = v
	}
	for _, text := range selectors {
		p := oracleSelector.FindStringSubmatch(text)
		value, has := labels[p[2]]
		yes := has
		switch {
		case p[6] != "":
			yes = has && strings.Contains(","+p[6]+",", ","+value+",")
		case strings.Contains(text, "="):
			yes = has && value == p[4]
		}
		if yes == (p[1]+p[3]+p[5] != "") {
			return false
		}
	}
	return true
}

// oracleRoom returns what the state may assign of a machine.
func oracleRoom(m *machine) command.Resources {
	if m.slots > 0 && m.tasks >= m.slots {
		return command.Resources{MilliCPU: -1}
	}
	return m.exposed.Minus(m.used)
}

// fitting returns the jobs with a task that machine m could take now.
func (s *State) fitting(m *machine) (seqs []uint64) { return s.fittingIn(m, oracleRoom(m)) }

// fittingIn returns the jobs with a task that machine m could take if it had so much room.
func (s *State) fittingIn(m *machine, room command.Resources) (seqs []uint64) {
	// A new epoch waits, or the site has as many as it may.
	if s.time < s.heldUntil || m.site.live.n >= s.bounds.held || !s.mostAt(m.site).FitsIn(s.bounds.site) {
		return nil
	}
	for seq, j := range s.jobs.All() {
		if j.waiting() == 0 || !s.sites[j.owner].present() || !j.class.Need.FitsIn(room) ||
			!oracleRuns[m.runs][j.class.Image] || !j.class.Allows(m.site.name) || !oracleSelects(m, j.class.Selectors) {
			continue
		}
		if m.held != 0 && m.held != seq {
			continue
		}
		if !j.isBarred(m.site) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// mostAt returns what a site could run at once.
func (s *State) mostAt(x *site) (most command.Resources) {
	for _, o := range x.machines {
		most = most.Plus(o.exposed.Greater(o.used))
	}
	for _, o := range x.former {
		most = most.Plus(o.used)
	}
	return most
}

// machinesInOrder returns what is offered now, by site and name.
func (s *State) machinesInOrder() (out []*machine) {
	for _, x := range s.order {
		for _, m := range x.machines {
			if x.state == Alive {
				out = append(out, m)
			}
		}
	}
	return out
}

// decide returns the first machine that fits something, and what it should run.
func (s *State) decide() (m *machine, seq uint64) {
	for _, m = range s.machinesInOrder() {
		seqs := s.fitting(m)
		if len(seqs) == 0 {
			continue
		}
		seq = s.nextOf(m, seqs)
		if s.params.PreferOwn {
			m = s.ownMachine(m, s.sites[s.jobs.Get(seq).owner], seq)
		}
		return m, seq
	}
	return nil, 0
}

// nextOf returns which of the jobs that fit machine m is served.
func (s *State) nextOf(m *machine, seqs []uint64) (seq uint64) {
	owner := s.turnOf(m, seqs)
	for _, q := range seqs {
		if s.jobs.Get(q).owner == owner.id && (seq == 0 || s.jobs.Get(q).order > s.jobs.Get(seq).order) {
			seq = q
		}
	}
	return seq
}

// turnOf returns the site to serve: rank, own machine, oldest head, name. A reserved machine serves its job's site.
func (s *State) turnOf(m *machine, seqs []uint64) *site {
	var best *site
	for _, q := range seqs {
		x := s.sites[s.jobs.Get(q).owner]
		if best == nil || x != best && s.betterTurn(m, seqs, x, best) {
			best = x
		}
	}
	return best
}

func (s *State) betterTurn(m *machine, seqs []uint64, a, b *site) bool {
	now := s.quanta(s.time)
	if c := s.policy.Rank(s.ranked(a), now).Compare(s.policy.Rank(s.ranked(b), now)); c != 0 {
		return c > 0
	}
	if a == m.site || b == m.site {
		return a == m.site
	}
	aMs, aSeq := s.oldest(seqs, a)
	bMs, bSeq := s.oldest(seqs, b)
	if aMs != bMs {
		return aMs < bMs
	}
	if aSeq != bSeq {
		return aSeq < bSeq
	}
	return strings.Compare(a.name, b.name) < 0
}

// oldest returns the oldest head among a site's fitting shapes.
func (s *State) oldest(seqs []uint64, x *site) (ms int64, seq uint64) {
	for _, q := range seqs {
		if s.jobs.Get(q).owner != x.id {
			continue
		}
		h := s.headOf(x, s.jobs.Get(q).class)
		if t := s.jobs.Get(h).headMs(); seq == 0 || t < ms || t == ms && h < seq {
			ms, seq = t, h
		}
	}
	return ms, seq
}

// headOf returns the first waiting job of a site and shape.
func (s *State) headOf(x *site, c *class) (head uint64) {
	for seq, j := range s.jobs.All() {
		if j.owner == x.id && j.class == c && j.waiting() > 0 && (head == 0 || j.order > s.jobs.Get(head).order) {
			head = seq
		}
	}
	return head
}

func (s *State) ownMachine(m *machine, owner *site, seq uint64) *machine {
	if m.site == owner {
		return m
	}
	for _, own := range s.machinesInOrder() {
		if own.site == owner && slices.Contains(s.fitting(own), seq) {
			return own
		}
	}
	return m
}

// oracle applies a batch to a copy of the state, matching as decide says, and returns what is live afterwards, and the
// commands' results. It takes no steps into account: what a cancellation frees, it frees at once.
func (s *State) oracle(t *rapid.T, b *command.Batch) (live string, results []command.Result) {
	var buf bytes.Buffer
	if err := s.freeze().Write(&buf); err != nil {
		t.Fatal(err)
	}
	c, err := restore(&buf, s.bounds)
	if err != nil {
		t.Fatal(err)
	}
	c.index++
	c.steps.begin(math.MaxUint64)
	c.advance(b.Term, b.Elapsed)
	c.depart()
	c.expire()
	by := authors{bundles: b.Bundles}
	var earned []oracleEarning
	for i := range b.Commands {
		by.next()
		var events []Event
		needs := c.needs()
		c.Observe(&events)
		results = append(results, c.execute(&by, &b.Commands[i], b))
		c.Observe(nil)
		earned = append(earned, c.earnings(b.Commands[i].Body, events, needs)...)
	}
	c.beginWaits()
	c.flushWaits(false)
	if c.founded != 0 {
		c.assignNaively()
		c.assignAheadNaively(earned)
		c.assignNaively()
	}
	return c.lives(), results
}

// assignNaively assigns until no machine fits anything.
func (s *State) assignNaively() {
	for m, seq := s.decide(); m != nil; m, seq = s.decide() {
		s.give(m, seq)
	}
}

// give assigns a job's next task to a machine.
func (s *State) give(m *machine, seq uint64) {
	j := s.jobs.Get(seq)
	s.assign(s.taskOf(s.sites[j.owner].findLane(j.class), seq), m)
}

// oracleEarning is a machine, by names, on which a task ended, and for how many tasks ahead that is good.
type oracleEarning struct {
	site, machine string
	tasks         int
	need          command.Resources // of what ended
}

// needs returns what a task of each job needs.
func (s *State) needs() map[command.JobID]command.Resources {
	out := map[command.JobID]command.Resources{}
	for _, j := range s.jobs.All() {
		out[command.JobID{Site: s.sites[j.owner].name, Num: j.num}] = j.class.Need
	}
	return out
}

// earnings returns what the ends in a command earn, as its events tell them; needs are those of jobs before it.
func (s *State) earnings(
	body command.Body, events []Event, needs map[command.JobID]command.Resources,
) (out []oracleEarning) {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case EventTaskEnded, EventTaskRequeued, EventTaskDelivering:
		default:
			continue
		}
		limit := int64(0)
		if e.StartedMs >= 0 && reportsEnd(body, e) {
			limit = s.byName[e.Site].idleMs
		}
		switch {
		case limit > 0 && e.RunMs <= limit:
			out = append(out, oracleEarning{e.Site, e.Machine, 2, needs[e.Job]})
		case limit > 0 && e.RunMs <= 4*limit:
			out = append(out, oracleEarning{e.Site, e.Machine, 1, needs[e.Job]})
		}
	}
	return out
}

// reportsEnd reports whether a command says that the attempt that an event is about ended by itself.
func reportsEnd(body command.Body, e *Event) bool {
	var ends []command.Ended
	switch c := body.(type) {
	case *command.Complete:
		ends = c.Attempts
	case *command.Orphans:
		ends = c.Attempts
	}
	return slices.ContainsFunc(ends, func(r command.Ended) bool {
		return r.Job == e.Job && r.Task == e.Task && r.Token == e.Token && r.Outcome != command.Lost
	})
}

// assignAheadNaively gives each earning one task, then a second one, as far as the machine would fit it with
// two or three times its room.
func (s *State) assignAheadNaively(earned []oracleEarning) {
	for n := range 2 {
		for i, e := range earned {
			if e.tasks <= n || s.waits != nil {
				continue
			}
			earned[i].tasks = 0
			for _, m := range s.machinesInOrder() {
				if m.site.name != e.site || m.name != e.machine || m.held != 0 ||
					m.slots > 0 && m.tasks >= int64(1+e.tasks)*m.slots {
					continue
				}
				layers := m.exposed
				for range e.tasks {
					layers = layers.Plus(m.exposed)
				}
				seqs := slices.DeleteFunc(s.fittingIn(m, layers.Minus(m.used)), func(q uint64) bool {
					need := s.jobs.Get(q).class.Need
					return !need.FitsIn(m.exposed) || !need.FitsIn(e.need)
				})
				if len(seqs) == 0 {
					continue
				}
				seq := s.nextOf(m, seqs)
				if !s.mostAt(m.site).Plus(s.jobs.Get(seq).class.Need).FitsIn(s.bounds.site) {
					continue
				}
				earned[i].tasks = e.tasks
				s.give(m, seq)
			}
		}
	}
}

// lives prints every live attempt.
func (s *State) lives() string {
	var out strings.Builder
	f := s.freeze()
	for _, a := range f.liveInOrder() {
		fmt.Fprintf(&out, "%d/%d attempt %d at %d/%s\n", a.seq, a.task, a.attempt, a.site, a.machine.name)
	}
	return out.String()
}
