package fsm

// markGated is the mark of a gated job beside its OnLoss and whether it delivers.
const markGated = 8

// encode writes where tasks of a gated job stand; g may be nil.
func (g *gating) encode(w *snapWriter) {
	if g == nil {
		g = &gating{}
	}
	w.uint(uint64(g.held.list.Len()))
	for v := range g.held.list.All() {
		w.uint(uint64(v.from), uint64(v.to))
	}
	w.uint(uint64(g.released.list.Len()))
	for v := range g.released.list.All() {
		w.uint(uint64(v.from), uint64(v.to))
		w.int(v.queuedMs)
	}
	w.uint(uint64(g.again.Len()))
	for b := range g.again.All() {
		w.uint(uint64(b.task), uint64(b.attempt), uint64(b.failures), uint64(b.losses), uint64(b.doubts))
		w.int(b.queuedMs, int64(b.exit), int64(b.signal))
		w.uint(uint64(b.end), b.since)
		if w.bool(b.last != nil); b.last != nil {
			b.last.encode(w)
		}
	}
}

// isGated reports whether a task is held, or was released and never ran.
func (t *taskSet) isGated(task uint32) bool {
	g := t.gating()
	return g != nil && (findSpan(&g.held.list, task) != nil || findSpan(&g.released.list, task) != nil ||
		t.findAgain(task) != nil)
}

// gating reads what gating.encode wrote, after runs and tasks that wait again.
func (r *snapReader) gating(s *State, seq uint64, j *job, t *taskSet) {
	if !j.gated || r.err != nil {
		return
	}
	g := &gating{}
	r.spans(s, j, t, &g.held, nil)
	r.spans(s, j, t, &g.released, &g.held)
	if g.held.tasks+g.released.tasks > 0 {
		t.rare().gating = g
	}
	last := int64(-1)
	for range r.upTo(uint64(j.count), "held tasks") {
		b := heldTask{backTask: backTask{
			task: r.u32("task"), attempt: r.u32("attempt"),
			failures: r.u32("failures"), losses: r.losses(s), doubts: r.u32("doubts"),
		}}
		b.queuedMs, b.exit, b.signal = r.ms(0, s.time), r.i32("exit code"), r.i32("signal")
		b.end, b.since = Ending(r.upTo(uint64(EndHandedBack), "ending")), r.upTo(s.index, "entry")
		if r.bool() {
			v := r.record(s, j)
			r.check(v.task == b.task && v.site >= 0 && int(v.site) < len(s.sites) && j.count <= s.bounds.detail,
				"a record of no attempt")
			b.last = &v
		}
		_, ended := t.findRun(b.task)
		idle := !ended && t.findBack(b.task) == nil && !t.isGated(b.task)
		r.check(b.task < j.count && idle && b.attempt > 0 && int64(b.task) > last && j.entry < b.since,
			"held tasks out of order")
		if r.err != nil {
			return
		}
		last = int64(b.task)
		s.addHeld(seq, j, b)
	}
}

// spans reads tasks of a gated job that never ran. Those that wait come after those that are held, with times.
func (r *snapReader) spans(s *State, j *job, t *taskSet, to, held *spans) {
	var last span
	for i := range r.upTo(uint64(j.count), "runs of tasks") {
		v := span{from: r.u32("task"), to: r.u32("task")}
		if held != nil {
			v.queuedMs = r.ms(0, s.time)
		}
		if r.check(v.from < v.to && v.to <= j.count && v.from >= last.to, "tasks out of order"); r.err != nil {
			return
		}
		r.check(i == 0 || v.from > last.to || v.queuedMs != last.queuedMs, "runs of tasks not joined")
		ended := t.runs.Get(t.runs.Search(func(o *run) bool { return o.to > v.from }))
		b := t.back().Get(t.back().Search(func(b *backTask) bool { return b.task >= v.from }))
		free := (ended == nil || ended.from >= v.to) && (b == nil || b.task >= v.to)
		if held != nil {
			_, both := firstIn(&held.list, v.from, v.to)
			free = free && !both
		}
		if r.check(free, "tasks are in two places"); r.err != nil {
			return
		}
		last = v
		to.list.Insert(to.list.End(), v)
		to.tasks += v.to - v.from
	}
}
