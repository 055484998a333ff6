package fsm

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/sched"
)

// snapshotMagic begins every snapshot; the last byte is the format's version.
const snapshotMagic = "cloudshare-state\x0e"

// HashFormat names the form over which the hash of a state is computed. Equal states have equal hashes only
// within one format.
const HashFormat = snapshotMagic

// Frozen is a state at one entry. It may be used while Apply runs on the state that it came from, and by several
// goroutines.
type Frozen struct {
	scalars
	sites        []frozenSite
	jobs         store.Pages[job]
	attempts     store.Pages[attempt]
	reservations store.Sorted[reservation]
	waits        *frozenWaits // nil unless the policy uses projected waits
	chores       []chore
	search       *search
	fresh        map[*class]freshness // of those that are fresh
	pass         uint64
	roster       roster.Contents
}

// scalars are the state's plain numbers, in the order they are written.
type scalars struct {
	version                    uint32
	index, term, founded, seed uint64
	termBase, time, createdMs  int64
	federation                 [16]byte
	leader                     string
	params                     command.Params
	decisions, nextSeq         uint64
	nextReserve, heldUntil     int64
	phase                      matchPhase
	retry                      uint64
}

// frozenSite is a site and the machines it offers.
type frozenSite struct {
	site
	offered []machine
}

// Snapshot returns a point-in-time copy without copying jobs: later writes copy the pages that they touch. It
// changes the state (not its content), so it must not run at the same time as any other method.
func (s *State) Snapshot() *Frozen {
	f := s.freeze()
	s.epoch++
	return f
}

// freeze is Snapshot for a copy that is used only while nobody writes.
func (s *State) freeze() *Frozen {
	f := &Frozen{
		scalars: scalars{
			version: s.version, index: s.index, term: s.term, founded: s.founded, seed: s.seed,
			termBase: s.termBase, time: s.time, createdMs: s.createdMs, federation: s.federation, params: s.params,
			leader:    s.leader,
			decisions: s.decisions, nextSeq: s.nextSeq, nextReserve: s.nextReserve, heldUntil: s.heldUntil,
			phase: s.phase, retry: s.retry,
		},
		chores: slices.Clone(s.chores), search: s.search.clone(), fresh: s.freezeFresh(), pass: s.pass,
		roster: s.roster.Contents(),
		sites:  make([]frozenSite, len(s.sites)), jobs: s.jobs.Frozen(), attempts: s.attempts.Frozen(),
		reservations: s.reservations.Clone(), waits: s.freezeWaits(),
	}
	for i, x := range s.sites {
		c := &f.sites[i]
		c.site = *x
		for _, m := range x.machines {
			c.offered = append(c.offered, *m)
		}
	}
	return f
}

// Hash returns the SHA-256 of the canonical snapshot: equal states, and only they, have equal hashes.
func (s *State) Hash() [32]byte { return s.freeze().Hash() }

// Index returns the number of the entry after which the copy was taken.
func (f *Frozen) Index() uint64 { return f.index }

// Release frees the copy's memory. The copy must not be used afterwards.
func (f *Frozen) Release() { *f = Frozen{} }

// Hash returns the state's hash.
func (f *Frozen) Hash() [32]byte {
	w := newSnapWriter(io.Discard)
	f.encode(w)
	return w.sum()
}

// Write writes the canonical snapshot and its SHA-256.
func (f *Frozen) Write(out io.Writer) error {
	w := newSnapWriter(out)
	f.encode(w)
	sum := w.sum()
	if w.err == nil {
		_, w.err = out.Write(sum[:])
	}
	return w.err
}

// snapWriter writes primitives and hashes what it writes. After its first error it keeps that error.
type snapWriter struct {
	out     *bufio.Writer
	hash    hash.Hash
	scratch []byte
	err     error
	classes map[*class]uint64
	loads   map[*payload]uint64
	labels  map[command.Labels]uint64
	version uint32
	search  *search // in progress, or nil
	fresh   map[*class]freshness
	pass    uint64
}

func newSnapWriter(out io.Writer) *snapWriter {
	h := sha256.New()
	return &snapWriter{
		out: bufio.NewWriterSize(io.MultiWriter(h, out), 256<<10), hash: h,
		classes: map[*class]uint64{}, loads: map[*payload]uint64{}, labels: map[command.Labels]uint64{},
	}
}

func (w *snapWriter) sum() (sum [32]byte) {
	if err := w.out.Flush(); w.err == nil {
		w.err = err
	}
	w.hash.Sum(sum[:0])
	return sum
}

func (w *snapWriter) flush() {
	if w.err == nil {
		_, w.err = w.out.Write(w.scratch)
	}
	w.scratch = w.scratch[:0]
}

func (w *snapWriter) uint(vs ...uint64) {
	for _, v := range vs {
		w.scratch = binary.AppendUvarint(w.scratch, v)
	}
}

func (w *snapWriter) int(vs ...int64) {
	for _, v := range vs {
		w.scratch = binary.AppendVarint(w.scratch, v)
	}
}

func (w *snapWriter) bool(v bool) {
	if v {
		w.uint(1)
	} else {
		w.uint(0)
	}
}

func (w *snapWriter) text(v string) { w.uint(uint64(len(v))); w.scratch = append(w.scratch, v...) }

func (w *snapWriter) id(v [16]byte)           { w.scratch = append(w.scratch, v[:]...) }
func (w *snapWriter) res(r command.Resources) { w.int(r.MilliCPU, r.MemMiB, r.GPU) }

func (w *snapWriter) texts(vs []string) {
	w.uint(uint64(len(vs)))
	for _, v := range vs {
		w.text(v)
	}
}

// encode writes the state, with nothing in it that depends on how the state came about: no addresses, no map
// order, no derived data.
func (f *Frozen) encode(w *snapWriter) {
	w.scratch = append(w.scratch, snapshotMagic...)
	w.version, w.search, w.fresh, w.pass = f.version, f.search, f.fresh, f.pass
	f.encodeScalars(w)
	w.roster(&f.roster)
	w.uint(uint64(len(f.sites)))
	for i := range f.sites {
		f.sites[i].encode(w)
		w.flush()
	}
	live := f.liveInOrder()
	w.uint(uint64(f.jobs.Len()))
	last := uint64(0)
	for seq, j := range f.jobs.All() {
		w.uint(seq - last)
		last = seq
		n := 0
		for n < len(live) && live[n].seq == seq {
			n++
		}
		j.encode(w, live[:n])
		live = live[n:]
		w.flush()
	}
	w.uint(uint64(f.reservations.Len()))
	for r := range f.reservations.All() {
		w.uint(r.seq, uint64(r.machine.site.id))
		w.text(r.machine.name)
	}
	left := f.leftInOrder()
	w.uint(uint64(len(left)))
	for _, a := range left {
		a.encodeLeft(w)
	}
	w.flush()
	f.encodeWaits(w)
}

func (f *Frozen) encodeScalars(w *snapWriter) {
	w.uint(uint64(f.version), f.index, f.term, f.founded, f.seed)
	w.int(f.termBase, f.time, f.createdMs)
	w.id(f.federation)
	w.text(f.leader)
	w.uint(f.decisions, f.nextSeq)
	w.int(f.nextReserve, f.heldUntil)
	w.params(&f.params)
	f.encodeLong(w)
}

func (w *snapWriter) params(p *command.Params) {
	w.text(p.Policy)
	w.uint(uint64(p.Running))
	w.bool(p.PreferOwn)
	w.bool(p.FixedOrder)
	w.bool(p.ClaimedHome)
	w.int(p.ReserveAfterMs, p.RetainMs, p.RetainJobs, p.DepartureMs)
	w.int(p.RateCPU, p.RateMem, p.RateGPU, p.QuantumMs, p.LeaseMs, p.MarginMs)
}

// liveInOrder returns the live attempts by job and task.
func (f *Frozen) liveInOrder() []*attempt {
	out := make([]*attempt, 0, f.attempts.Len())
	for _, a := range f.attempts.All() {
		if a.phase != phaseLeft {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.task, b.task))
	})
	return out
}

func (x *frozenSite) encode(w *snapWriter) {
	w.text(x.name)
	w.id(x.node)
	w.uint(uint64(len(x.boots)))
	for _, b := range x.boots {
		w.id(b)
	}
	w.text(x.http)
	w.text(x.peer)
	w.text(x.gossip)
	w.uint(uint64(x.maxVersion), uint64(x.state))
	w.int(x.lostMs)
	w.bool(x.gone)
	w.bool(x.missed)
	w.uint(uint64(x.closed))
	if w.version >= command.AheadVersion {
		w.int(x.idleMs)
	}
	w.uint(x.incarnation, x.floor, uint64(len(x.window)))
	for i := range x.window {
		w.uint(x.window[i].seq)
		w.result(&x.window[i].result)
	}
	w.result(&x.registered)
	w.uint(x.settled, x.maxNum, uint64(len(x.retired)))
	for _, r := range x.retired {
		w.uint(r.From, r.To)
	}
	w.uint(x.usageBatch, x.lastStart, x.offerVersion, x.offers)
	w.res(x.capacity)
	w.res(x.home)
	w.int(x.homeRan.Hi)
	w.uint(x.homeRan.Lo)
	w.uint(uint64(len(x.offered)))
	for i := range x.offered {
		w.text(x.offered[i].name)
		w.res(x.offered[i].exposed)
		w.res(x.offered[i].whole)
		w.uint(uint64(x.offered[i].runs))
		w.uint(marks(x.offered[i].resting, x.offered[i].tried, x.offered[i].pass == w.pass))
		w.int(x.offered[i].slots)
		w.labelled(x.offered[i].labels.text())
	}
	w.uint(uint64(len(x.row)))
	for _, c := range x.row {
		w.uint(uint64(c.executor), c.tasks)
		for _, v := range [...]sched.Int128{c.sums.A, c.sums.B, c.sums.R} {
			w.int(v.Hi)
			w.uint(v.Lo)
		}
	}
}

func (w *snapWriter) result(r *command.Result) {
	w.uint(uint64(r.Code), r.Index, uint64(len(r.Jobs)))
	for _, c := range r.Jobs {
		w.uint(uint64(c))
	}
	w.uint(r.Incarnation, r.NextJob, r.NextUsage, r.Motion)
}

func (j *job) encode(w *snapWriter, live []*attempt) {
	w.uint(uint64(j.owner), j.num, j.entry)
	w.int(j.timeoutMs, j.createdMs, j.queuedMs, j.startedMs, j.endedMs, int64(j.order))
	w.uint(uint64(j.count), uint64(j.next), uint64(j.maxAttempts))
	w.uint(uint64(j.onLoss)<<1 | marks(j.delivers, false, false, j.gated)) // the last is markGated
	w.class(j.class)
	w.payload(j.payload)
	w.bool(j.tasks != nil)
	if j.tasks != nil {
		j.tasks.encode(w, live, j.gated)
	}
}

// isFirst writes the number of an object that several share, and reports whether it is written for the first time:
// then the object itself must follow.
func isFirst[T comparable](w *snapWriter, numbers map[T]uint64, x T) bool {
	no, ok := numbers[x]
	if !ok {
		no = uint64(len(numbers))
		numbers[x] = no
	}
	w.uint(no)
	return !ok
}

func (w *snapWriter) class(c *class) {
	if !isFirst(w, w.classes, c) {
		return
	}
	w.res(c.Need)
	w.uint(marks(c.Image) | uint64(w.fresh[c])<<1 | uint64(w.search.of(c))<<3)
	w.texts(c.Only)
	w.texts(c.Not)
	w.texts(c.Selectors)
}

func (w *snapWriter) labelled(l command.Labels) {
	if isFirst(w, w.labels, l) {
		w.text(string(l))
	}
}

func (w *snapWriter) payload(p *payload) {
	if isFirst(w, w.loads, p) {
		w.text(p.data)
	}
}

func (t *taskSet) encode(w *snapWriter, live []*attempt, gated bool) {
	w.text(t.why)
	w.uint(uint64(t.cancel()))
	w.bars(t.bars())
	w.uint(uint64(t.runs.Len()))
	for r := range t.runs.All() {
		w.uint(uint64(r.from), uint64(r.to), uint64(r.state))
		w.int(int64(r.exit), r.endedMs)
	}
	w.uint(uint64(t.back().Len()))
	for b := range t.back().All() {
		w.uint(uint64(b.task), uint64(b.attempt), uint64(b.failures), uint64(b.losses), uint64(b.doubts))
		w.int(b.queuedMs)
	}
	if gated {
		t.gating().encode(w)
	}
	w.uint(uint64(t.delivering().Len()))
	for d := range t.delivering().All() {
		d.encode(w)
	}
	w.uint(uint64(len(live)))
	for _, a := range live {
		a.encode(w)
	}
	w.uint(uint64(t.records.Len()))
	for r := range t.records.All() {
		r.encode(w)
	}
}

func (w *snapWriter) bars(bars []bar) {
	w.uint(uint64(len(bars)))
	for _, b := range bars {
		w.uint(uint64(b.site), b.offers)
	}
}

func (a *attempt) encode(w *snapWriter) {
	w.uint(uint64(a.task), uint64(a.attempt), a.token, uint64(a.site))
	w.uint(uint64(a.failures), uint64(a.losses), uint64(a.doubts))
	w.uint(uint64(a.phase), uint64(a.phaseBefore))
	w.text(a.machine.name)
	w.int(a.weight, a.queuedMs, a.assignedMs, a.startedMs, a.boundMs, a.stopMs)
	w.uint(marks(a.given) | uint64(a.word)<<1)
	w.text(a.why)
}

func (r *record) encode(w *snapWriter) {
	w.uint(uint64(r.task), uint64(r.attempt), uint64(r.failures), uint64(r.losses), r.token)
	w.int(int64(r.exit), int64(r.signal), int64(r.site), r.queuedMs, r.assignedMs, r.startedMs, r.endedMs)
	w.text(r.machine)
	w.text(r.detail)
	w.facts(r.facts)
}
