package fsm

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// tally is what a site uses of each quota, counted from its jobs alone.
type tally struct {
	tasks, bytes, keptBytes, records int
	open, kept                       int
	shapes                           map[string]int
	nums                             map[uint64]bool
	retired                          []store.Span
}

func (s *State) tally(x *site) *tally {
	n := &tally{shapes: map[string]int{}, nums: map[uint64]bool{}, retired: x.retired}
	for _, j := range s.jobs.All() {
		if j.owner != x.id {
			continue
		}
		n.nums[j.num] = true
		left, size := int(j.count), listBytes(j.class.Only, j.class.Not, j.class.Selectors)+len(j.payload.data)
		runs := 0
		if j.tasks != nil {
			for r := range j.tasks.runs.All() {
				left -= int(r.to - r.from)
			}
			n.records += j.tasks.records.Len()
			for b := range j.tasks.again().All() {
				n.records += btoi(b.last != nil)
			}
			runs = j.tasks.runs.Len()
		}
		if left == 0 {
			n.kept++
			n.keptBytes += size + 24*runs
			continue
		}
		n.open++
		n.tasks += left
		n.bytes += size
		n.shapes[j.class.key]++
	}
	return n
}

func listBytes(lists ...[]string) (n int) {
	for _, text := range slices.Concat(lists...) {
		n += len(text) + 1
	}
	return n
}

// checkUse compares what is counted of each site with its jobs.
func (s *State) checkUse() error {
	members := 0
	for _, x := range s.sites {
		if !x.gone {
			members++
		}
		n := s.tally(x)
		want := use{uint64(n.tasks), uint64(n.bytes), uint64(n.keptBytes), uint64(n.records)}
		if x.use != want || int(x.openJobs()) != n.open || x.ended.Len() != n.kept || len(x.open) != len(n.shapes) {
			return fmt.Errorf("%s uses %+v, %d jobs open and %d kept of %d shapes, should be %+v, %d and %d of %d",
				x.name, x.use, x.openJobs(), x.ended.Len(), len(x.open), want, n.open, n.kept, len(n.shapes))
		}
		if x.crowded != slices.Contains(s.crowded, x) || s.keepsTooMuch(x) && !x.crowded {
			return fmt.Errorf("%s keeps too much: %v, noted: %v", x.name, s.keepsTooMuch(x), x.crowded)
		}
		if !slices.IsSortedFunc(values(&x.ended), func(a, b uint64) int {
			p, q := s.jobs.Get(a), s.jobs.Get(b)
			return slices.Compare([]int64{p.endedMs, int64(a)}, []int64{q.endedMs, int64(b)})
		}) {
			return fmt.Errorf("ended jobs of %s are out of order", x.name)
		}
		if i := x.keeperAt; x.ended.Len() > 0 && (x.oldestMs != s.jobs.Get(*x.ended.First()).endedMs ||
			*s.keepers.At(i) != x || i > 0 && x.leavesBefore(*s.keepers.At((i - 1) / 2))) {
			return fmt.Errorf("%s is not at its place among the keepers", x.name)
		}
	}
	if members != s.members || s.limits != s.bounds.limitsOf(members) {
		return fmt.Errorf("%d members, %d counted, limits %+v", members, s.members, s.limits)
	}
	return nil
}

// oracleShare returns an equal part, or the floor.
func oracleShare(q share, members int) int { return max(int(q.floor), int(q.total)/max(members, 1)) }

// oracleCode returns what a state should answer for one job of a site, by a count of the site alone, to which an
// accepted job is added.
func (s *State) oracleCode(n *tally, settled uint64, j *command.JobSpec) command.Code {
	members := 0
	for _, x := range s.sites {
		if !x.gone {
			members++
		}
	}
	b := &s.bounds
	keep := min(int(s.params.RetainJobs), oracleShare(b.kept, members))
	pendingJobs, pendingBytes := max(0, n.kept-keep), 0
	if n.kept > 1 {
		pendingBytes = max(0, n.keptBytes-oracleShare(b.keptBytes, members))
	}
	numbers := oracleShare(b.jobs, members) + oracleShare(b.kept, members) + int(b.gaps)
	if len(n.retired) > 0 && j.Num < n.retired[0].From {
		numbers += oracleShare(b.jobs, members)
	}
	h, size := j.Shape(), listBytes(j.Only, j.Not, j.Selectors)+len(j.Payload)
	switch key := string(h.AppendKey(nil)); {
	case n.nums[j.Num]:
		return command.JobExists
	case j.Num < settled ||
		slices.ContainsFunc(n.retired, func(r store.Span) bool { return r.From <= j.Num && j.Num <= r.To }):
		return command.JobRetired
	case n.tasks+int(j.Count) > oracleShare(b.tasks, members):
		return command.TooManyTasks
	case n.open+pendingJobs >= oracleShare(b.jobs, members):
		return command.TooManyJobs
	case n.bytes+pendingBytes+size > oracleShare(b.bytes, members):
		return command.TooManyBytes
	case len(n.nums)+len(n.retired) >= numbers:
		return command.TooManyNumbers
	case n.shapes[key] == 0 && len(n.shapes) >= b.shapes:
		return command.TooManyShapes
	default:
		n.tasks, n.bytes, n.open = n.tasks+int(j.Count), n.bytes+size, n.open+1
		n.shapes[key]++
		n.nums[j.Num] = true
		return command.OK
	}
}

// expectQuotas executes an entry's commands on a copy and compares each Submit's answer with a count of its site
// alone.
func (m *model) expectQuotas(b *command.Batch) {
	if !slices.ContainsFunc(b.Commands, func(c command.Command) bool { _, ok := c.Body.(*command.Submit); return ok }) {
		return
	}
	var buf bytes.Buffer
	if err := m.w.s.freeze().Write(&buf); err != nil {
		m.t.Fatal(err)
	}
	s, err := restore(&buf, m.w.s.bounds)
	if err != nil {
		m.t.Fatal(err)
	}
	s.index++
	s.steps.begin(s.bounds.steps)
	s.advance(b.Term, b.Elapsed)
	s.depart()
	s.expire()
	for i := range b.Commands {
		c := &b.Commands[i]
		sub, ok := c.Body.(*command.Submit)
		x := s.byName[c.ID.Site]
		if !ok || x == nil || c.ID.Seq <= x.floor ||
			slices.ContainsFunc(x.window, func(a answer) bool { return a.seq == c.ID.Seq }) {
			s.execute(&authors{}, c, b)
			continue
		}
		n, settled := s.tally(x), max(x.settled, sub.Settled)
		n.retired = slices.Clone(n.retired)
		n.retired = slices.DeleteFunc(n.retired, func(r store.Span) bool { return r.To < settled })
		if len(n.retired) > 0 {
			n.retired[0].From = max(n.retired[0].From, settled)
		}
		want := make([]command.Code, len(sub.Jobs))
		for k := range sub.Jobs {
			want[k] = s.oracleCode(n, settled, &sub.Jobs[k])
		}
		r := s.execute(&authors{}, c, b)
		got := r.Jobs
		if got == nil {
			got = make([]command.Code, len(sub.Jobs))
		}
		if r.Code == command.OK && r.Index == s.index && !slices.Equal(got, want) {
			m.t.Fatalf("%s is told %v, should be %v: %+v", x.name, got, want, n)
		}
	}
}
