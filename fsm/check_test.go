package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// check recomputes from the primary data everything that is derived or must add up, and returns the first
// contradiction.
func (s *State) check() error {
	for _, f := range []func() error{
		s.checkLedger, s.checkAttempts, s.checkJobs, s.checkDeliveries, s.checkGating, s.checkUse,
		s.checkQueues, s.checkMachines, s.checkWaits,
	} {
		if err := f(); err != nil {
			return fmt.Errorf("entry %d: %w", s.index, err)
		}
	}
	if n := s.PendingWork(); n > 0 != s.Pending() || n < len(s.chores) {
		return fmt.Errorf("entry %d: %d pieces of work are pending with %d chores, pending: %v", s.index, n, len(s.chores), s.Pending())
	}
	return nil
}

func (s *State) checkLedger() error {
	if s.founded == 0 {
		return nil
	}
	want := make([]sched.Account, len(s.sites))
	for _, x := range s.sites {
		for _, c := range x.row {
			want[x.id].Used.Plus(c.sums)
			want[c.executor].Gave.Plus(c.sums)
		}
	}
	for _, a := range s.attempts.All() {
		if a.startedMs >= 0 {
			start, queued := s.quanta(a.startedMs), s.quanta(a.queuedMs)
			want[a.site].GaveRun.Add(a.weight, start, queued)
			want[s.jobs.Get(a.seq).owner].UsedRun.Add(a.weight, start, queued)
		}
	}
	for _, policy := range []string{sched.OrigDirect, sched.RelDirect, sched.SimplDirect} {
		for _, mode := range []sched.Mode{sched.Partial, sched.Completed} {
			var sum sched.Int128
			for _, x := range s.sites {
				_, _, p := sched.Standing(policy, mode, &x.account, s.quanta(s.time))
				sum = sum.Add(p)
			}
			if !sum.IsZero() {
				return fmt.Errorf("priorities sum to %v under %s", sum, policy)
			}
		}
	}
	for i, x := range s.sites {
		a := x.account
		share, unseen := int64(0), x.homeRan
		if x.present() {
			share = x.exposed.MilliCPU
		}
		if s.params.ClaimedHome {
			unseen = sched.Int128{}
			if x.present() {
				share += x.home.MilliCPU
			}
		}
		if own := ownOf(x); a.Share != share || a.Unseen != unseen || x.homeRan.Cmp(own) > 0 {
			return fmt.Errorf("%s contributes %d, %v of %v unseen, should be %d, %v", x.name, a.Share, a.Unseen, own, share, unseen)
		}
		a.Share, a.Unseen, a.LastStart, a.Projection = 0, sched.Int128{}, 0, sched.Projection{}
		if a != want[i] {
			return fmt.Errorf("account of %s is %+v, its history says %+v", x.name, a, want[i])
		}
		if x.account.LastStart != x.lastStart {
			return fmt.Errorf("last start of %s", x.name)
		}
	}
	return nil
}

// ownOf returns ψ″ of what a site ran for itself.
func ownOf(x *site) sched.Int128 {
	for _, c := range x.row {
		if c.executor == x.id {
			return c.sums.A
		}
	}
	return sched.Int128{}
}

func (s *State) checkAttempts() error {
	n, assigned, dying, watched, left := 0, 0, 0, 0, 0
	for slot, a := range s.attempts.All() {
		n++
		if a.phase == phaseAssigned {
			assigned++
		}
		if due := a.dueMs(); due > 0 != (a.rank >= 0) || (a.phase == phaseStopping) != (a.stopMs > 0) ||
			due > 0 && due <= s.time && !s.unfinished() {
			return fmt.Errorf("attempt %d is due at %d, stops until %d, and watched: %d", slot, due, a.stopMs, a.rank)
		}
		if i := int(a.rank); i >= 0 {
			watched++
			if *s.due.At(i) != slot || i > 0 && s.isDueBefore(slot, *s.due.At((i - 1) / 2)) {
				return fmt.Errorf("attempt %d is not at its place among the due", slot)
			}
		}
		if a.word == wordHeld && !slices.Contains(s.sites[a.site].holds, slot) {
			return fmt.Errorf("attempt %d is held by a registration that does not know", slot)
		}
		if a.phase == phaseLeft {
			left++
			if s.leftovers[a.leftKey()] != slot || a.startedMs >= 0 || a.dueMs() > 0 && a.dueMs() <= s.time &&
				!s.unfinished() || a.given && a.boundMs == 0 || a.word != wordNone && !s.hasChore(a.site) {
				return fmt.Errorf("leftover %d, bound %d, given %v", slot, a.boundMs, a.given)
			}
			if d := a.left.doubt; d == doubtOpen && !s.isReturned(a) || d != doubtNone &&
				(a.given || a.doubts > s.bounds.doubts || a.left.startedMs >= 0 && a.phaseBefore != phaseRunning) {
				return fmt.Errorf("leftover %d, doubt %d: %+v", slot, d, a)
			}
			if l := s.live[taskKey{a.seq, a.task}]; s.live[taskKey{a.seq, a.task}] != 0 &&
				s.attempts.Get(l).attempt == a.attempt {
				return fmt.Errorf("leftover %d is live, too", slot)
			}
			continue
		}
		if a.phase == phaseAwaitingBound {
			dying++
			if a.boundMs <= s.time && !s.unfinished() || !a.given && s.sites[a.site].present() && !s.hasChore(a.site) {
				return fmt.Errorf("attempt %d dies by %d at %d, given up %v", slot, a.boundMs, s.time, a.given)
			}
		}
		if a.word != wordNone && !s.hasChore(a.site) ||
			a.phase == phaseAway && !s.sites[a.site].parked() && !s.hasChore(a.site) {
			return fmt.Errorf("attempt %d is %v after %v at %s", slot, a.phase, a.word, s.sites[a.site].name)
		}
		if s.live[taskKey{a.seq, a.task}] != slot {
			return fmt.Errorf("task %d/%d has two live attempts", a.seq, a.task)
		}
		if s.jobs.Get(a.seq) == nil {
			return fmt.Errorf("attempt of no job %d", a.seq)
		}
	}
	listed := 0
	for _, x := range s.sites {
		slots := s.slotsOf(x, 0)
		for i, slot := range slots { // the last change first
			a := s.attempts.Get(slot)
			if a == nil || a.site != x.id || a.changed > x.changed ||
				i > 0 && s.attempts.Get(slots[i-1]).changed < a.changed {
				return fmt.Errorf("attempt %d is not at its place in %s", slot, x.name)
			}
		}
		if listed += len(slots); len(slots) != x.live.n {
			return fmt.Errorf("%s has %d attempts, %d counted", x.name, len(slots), x.live.n)
		}
	}
	if dying != s.dying || watched != s.due.Len() || left != len(s.leftovers) {
		return fmt.Errorf("%d attempts are dying, %d counted; %d due, %d watched; %d left over, %d indexed", dying, s.dying, watched, s.due.Len(), left, len(s.leftovers))
	}
	if n != len(s.live)+left || n != s.attempts.Len() || n != listed || assigned != s.assigned {
		return fmt.Errorf("%d attempts, %d indexed, %d counted", n, len(s.live), s.attempts.Len())
	}
	return nil
}

func (s *State) checkJobs() error {
	n, ended := 0, 0
	open := map[*class]int{}
	for seq, j := range s.jobs.All() {
		n++
		c := s.counts(j)
		var sum, seen Counts
		total := uint32(0)
		for i := range j.count {
			seen[s.viewTask(seq, j, i).State]++
		}
		for _, v := range c {
			total += v
		}
		if sum = c; sum != seen || total != j.count {
			return fmt.Errorf("job %d of %d tasks counts %v, its tasks are %v", seq, j.count, c, seen)
		}
		if over := c[TaskSucceeded]+c[TaskFailed]+c[TaskCancelled]+c[TaskLost] == j.count; over != j.over() {
			return fmt.Errorf("job %d ended: %v, its tasks: %v", seq, j.over(), over)
		}
		if j.over() {
			ended++
		} else {
			open[j.class]++
		}
		if s.sites[j.owner].nums[j.num] != seq {
			return fmt.Errorf("job %d is not in its owner's index", seq)
		}
	}
	for _, x := range s.sites {
		for _, o := range x.open {
			open[o.class] -= o.n
			if o.n <= 0 {
				return fmt.Errorf("%s has %d open jobs of %v", x.name, o.n, o.class.Need)
			}
		}
	}
	for _, x := range s.sites {
		at := uint64(0)
		for p := range x.openSeqs.All() {
			seq := *p
			if j := s.jobs.Get(seq); seq <= at || j == nil || j.over() || j.owner != x.id {
				return fmt.Errorf("job %d is listed as open of %s", seq, x.name)
			}
			at = seq
			n--
		}
	}
	if n != ended {
		return fmt.Errorf("%d jobs are not listed as open", n-ended)
	}
	n = s.jobs.Len()
	for c, n := range open {
		if n != 0 {
			return fmt.Errorf("%d open jobs of %v are not counted", n, c.Need)
		}
	}
	if n != s.jobs.Len() || ended != s.kept {
		return fmt.Errorf("%d jobs, %d counted; %d ended, %d queued to leave", n, s.jobs.Len(), ended, s.kept)
	}
	return nil
}

func (s *State) checkQueues() error {
	waiting := map[*class]uint64{}
	var all, present uint64
	for _, j := range s.jobs.All() {
		w := uint64(j.waiting())
		all += w
		if s.sites[j.owner].present() {
			waiting[j.class] += w
			present += w
		}
	}
	if all != s.waiting || present != s.present {
		return fmt.Errorf("%d wait, %d counted; %d present, %d counted", all, s.waiting, present, s.present)
	}
	active := 0
	for _, c := range s.classes {
		if c.waiting != waiting[c] {
			return fmt.Errorf("class %v: %d wait, %d counted", c.Need, waiting[c], c.waiting)
		}
		if c.waiting > 0 {
			active++
		}
	}
	if active != len(s.active) {
		return fmt.Errorf("%d active classes, %d listed", active, len(s.active))
	}
	if err := s.checkBarCounts(); err != nil {
		return err
	}
	if err := s.checkGates(); err != nil {
		return err
	}
	return s.checkHeads()
}

// checkBarCounts compares the counts of barred jobs of lanes and classes with a scan of all jobs.
func (s *State) checkBarCounts() error {
	lanes, classes := map[*lane]map[*site]int{}, map[*class]map[*site]int{}
	laneJobs, classJobs := map[*lane]int{}, map[*class]int{}
	for _, j := range s.jobs.All() {
		if j.waiting() == 0 {
			continue
		}
		owner := s.sites[j.owner]
		l := owner.findLane(j.class)
		laneJobs[l]++
		if owner.present() {
			classJobs[j.class]++
		}
		for _, x := range s.sites {
			if !j.isBarred(x) {
				continue
			}
			countIn(lanes, l, x)
			if owner.present() {
				countIn(classes, j.class, x)
			}
		}
	}
	for _, x := range s.sites {
		for _, l := range x.lanes {
			if err := s.sameBarCounts(l.jobs, l.barredFrom, laneJobs[l], lanes[l]); err != nil {
				return fmt.Errorf("lane of %s: %w", x.name, err)
			}
		}
	}
	for _, c := range s.classes {
		if err := s.sameBarCounts(c.jobs, c.barredFrom, classJobs[c], classes[c]); err != nil {
			return fmt.Errorf("class %v: %w", c.Need, err)
		}
	}
	return nil
}

func countIn[K comparable](counts map[K]map[*site]int, k K, x *site) {
	if counts[k] == nil {
		counts[k] = map[*site]int{}
	}
	counts[k][x]++
}

func (s *State) sameBarCounts(jobs int, got barCounts, wantJobs int, want map[*site]int) error {
	if jobs != wantJobs {
		return fmt.Errorf("%d jobs wait, %d counted", wantJobs, jobs)
	}
	for _, x := range s.sites {
		if got.of(x) != want[x] {
			return fmt.Errorf("%d jobs are barred from %s, %d counted", want[x], x.name, got.of(x))
		}
	}
	if !slices.IsSortedFunc(got, func(a, b barCount) int { return cmp.Compare(a.site, b.site) }) {
		return fmt.Errorf("counts in disorder: %+v", got)
	}
	return nil
}

// checkHeads compares each lane's head and queues with a scan of all jobs.
func (s *State) checkHeads() error {
	type head struct {
		prio int32
		seq  uint64
	}
	type key struct {
		owner int32
		class *class
	}
	first, waiting := map[key]head{}, map[key][]uint64{}
	for seq, j := range s.jobs.All() {
		k := key{j.owner, j.class}
		h, ok := first[k]
		if j.waiting() > 0 {
			waiting[k] = append(waiting[k], seq)
		}
		if j.waiting() > 0 && (!ok || j.order > h.prio) {
			first[k] = head{j.order, seq}
		}
	}
	n := 0
	if len(s.returned) > 0 || s.unindexed {
		return fmt.Errorf("%d sites returned in this entry, sites not indexed: %v", len(s.returned), s.unindexed)
	}
	for _, x := range s.sites {
		if x.counted != x.present() || s.order[x.pos] != x {
			return fmt.Errorf("%s is present: %v, counted: %v, at %d", x.name, x.present(), x.counted, x.pos)
		}
		for _, l := range x.lanes {
			n++
			if h := first[key{x.id, l.class}]; h.seq != l.seq || l.queuedMs != s.jobs.Get(l.seq).headMs() {
				return fmt.Errorf("head of %s is job %d, should be %d", x.name, l.seq, h.seq)
			}
			if want := waiting[key{x.id, l.class}]; !slices.Equal(l.seqsInOrder(), want) {
				return fmt.Errorf("jobs %v stand in a lane of %s, %v wait", l.seqsInOrder(), x.name, want)
			}
			if (l.heapAt >= 0) != x.present() {
				return fmt.Errorf("lane of %s (present %v) at %d", x.name, x.present(), l.heapAt)
			}
		}
	}
	if n != len(first) {
		return fmt.Errorf("%d lanes, should be %d", n, len(first))
	}
	return nil
}

// seqsInOrder returns the jobs in a lane's queues, by arrival.
func (l *lane) seqsInOrder() (seqs []uint64) {
	for at := range l.queues.All() {
		q := *at
		for seq := range q.seqs.All() {
			seqs = append(seqs, *seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

func (s *State) checkMachines() error {
	used, tasks := map[*machine]command.Resources{}, map[*machine]int64{}
	for _, a := range s.attempts.All() {
		if a.phase == phaseLeft {
			used[a.machine] = used[a.machine].Plus(a.left.need)
		} else {
			used[a.machine] = used[a.machine].Plus(s.jobs.Get(a.seq).class.Need)
		}
		tasks[a.machine]++
	}
	held := 0
	sets := map[*labelSet]int{}
	for _, x := range s.sites {
		var free, stock int64
		var most, widest, reach command.Resources
		all, uses := slices.Clone(x.machines), command.Resources{}
		for name, m := range x.former {
			if m.offered || m.tasks == 0 || m.name != name || x.machine(name) != nil {
				return fmt.Errorf("machine %s/%s is offered %v, with %d tasks", x.name, m.name, m.offered, m.tasks)
			}
			all = append(all, m)
		}
		for i, m := range all {
			uses = uses.Plus(m.used)
			if m.used != used[m] || m.tasks != tasks[m] || m.offered != (i < len(x.machines)) ||
				m.offered && m.pos != i || m.site != x {
				return fmt.Errorf("machine %s/%s uses %v in %d tasks, its attempts %v in %d", x.name, m.name, m.used, m.tasks, used[m], tasks[m])
			}
			if m.tried && (s.phase != cut || m.pass != s.pass || !slices.Contains(s.tried, m)) ||
				m.pass == s.pass && s.phase != cut {
				return fmt.Errorf("machine %s/%s was tried in no match", x.name, m.name)
			}
			if m.offered && !m.tried && (m.slots == 0 || m.tasks < m.slots) {
				stock += max(0, m.exposed.MilliCPU-m.used.MilliCPU)
				if !m.resting || x.missed {
					free += max(0, m.exposed.MilliCPU-m.used.MilliCPU)
				}
			}
			if m.held != 0 {
				held++
			}
			reach = reach.Plus(m.exposed.Greater(m.used))
			if m.offered {
				most, widest = most.Greater(m.whole), widest.Greater(m.exposed)
			}
			if sets[m.labels]++; m.labels != nil && (!m.offered || s.labelSets[m.labels.labels] != m.labels) {
				return fmt.Errorf("machine %s/%s, offered %v, has labels %q of its own", x.name, m.name, m.offered, m.labels.labels)
			}
			r := s.reservations.Get(s.reservations.Search(func(r *reservation) bool { return r.no >= m.heldNo }))
			if m.held != 0 && (s.held[m.held] != m || !m.offered || r == nil || r.machine != m || r.seq != m.held) {
				return fmt.Errorf("machine %s/%s is held for %d", x.name, m.name, m.held)
			}
		}
		if most != x.most || widest != x.widest {
			return fmt.Errorf("%s has machines of at most %v, %v exposed, should be %v, %v", x.name, x.most, x.widest, most, widest)
		}
		own := x.free.Total()
		if x.missed {
			own = x.stock.Total()
		}
		if free != own || stock != x.stock.Total() {
			return fmt.Errorf("%s has %d free of %d, should be %d of %d", x.name, x.free.Total(), x.stock.Total(), free, stock)
		}
		if reach != x.reach || uses != x.used {
			return fmt.Errorf("%s could run %v at once, should be %v; uses %v, should be %v", x.name, x.reach, reach, x.used, uses)
		}
		if x.state != Alive || x.live.n >= s.bounds.held || !reach.FitsIn(s.bounds.site) {
			free, stock = 0, 0
		}
		if s.supply.Weight(x.pos) != free || s.stock.Weight(x.pos) != stock {
			return fmt.Errorf("totals of %s", x.name)
		}
	}
	delete(sets, nil)
	for x, n := range sets {
		if x.refs != n || len(sets) != len(s.labelSets) {
			return fmt.Errorf("labels %q are of %d machines, not %d; %d sets, not %d", x.labels, n, x.refs, len(sets), len(s.labelSets))
		}
	}
	for _, x := range s.sites {
		of, owned := 0, 0
		for seq, m := range s.held {
			of += btoi(m.site == x)
			owned += btoi(s.jobs.Get(seq).owner == x.id)
		}
		if of != x.heldMachines || owned != x.heldFor {
			return fmt.Errorf("%s has %d machines held, %d counted, for %d of its jobs, %d counted", x.name, of, x.heldMachines, owned, x.heldFor)
		}
	}
	if held != s.reservations.Len() || held != len(s.held) || len(s.fresh) != 0 && s.phase == matched ||
		len(s.late) != 0 && s.phase != cut {
		return fmt.Errorf("%d held, %d reservations; %d fresh, %d late", held, s.reservations.Len(), len(s.fresh), len(s.late))
	}
	for f, list := range map[freshness][]*class{isFresh: s.fresh, isLate: s.late} {
		for i, c := range list {
			if c.fresh != f || c.freshAt != i || c.waiting == 0 {
				return fmt.Errorf("class %v, %d waiting, is fresh: %d", c.Need, c.waiting, c.fresh)
			}
		}
	}
	return nil
}

// reborn returns the state after its snapshot was written and restored.
func reborn(s *State) (*State, error) {
	var b bytes.Buffer
	f := s.Snapshot()
	if err := f.Write(&b); err != nil {
		return nil, err
	}
	f.Release()
	r, err := restore(&b, s.bounds)
	if err != nil {
		return nil, err
	}
	if r.Hash() != s.Hash() {
		return nil, fmt.Errorf("hash differs after restore at entry %d", s.index)
	}
	return r, r.check()
}
