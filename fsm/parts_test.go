package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFenwickAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		var f fenwick
		f.reset(rapid.IntRange(0, 50).Draw(t, "before"))
		f.reset(n)
		weights := make([]int64, n)
		for range rapid.IntRange(0, 80).Draw(t, "sets") {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			weights[i] = rapid.Int64Range(0, 9).Draw(t, "w")
			f.set(i, weights[i])
		}
		total := int64(0)
		for i, w := range weights {
			for r := range w {
				if pos, rest := f.find(total + r); pos != i || rest != r {
					t.Fatalf("find(%d) = %d, %d; want %d, %d", total+r, pos, rest, i, r)
				}
			}
			total += w
		}
		if f.total != total {
			t.Fatalf("total %d, want %d", f.total, total)
		}
	})
}

func TestNumRangeAgainstSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r numRange
		set := map[uint64]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			n := rapid.Uint64Range(1, 30).Draw(t, "n")
			old := slices.Clone(r)
			kept := r
			if rapid.IntRange(0, 9).Draw(t, "op") == 0 {
				r = r.from(n)
				for k := range set {
					if k < n {
						delete(set, k)
					}
				}
			} else {
				nums := append(rapid.SliceOfN(rapid.Uint64Range(1, 30), 0, 5).Draw(t, "more"), n)
				for _, k := range nums {
					set[k] = true
				}
				r = r.with(nums)
			}
			if !slices.Equal(kept, old) {
				t.Fatal("a change wrote into a slice that a snapshot may hold")
			}
			for k := uint64(0); k < 33; k++ {
				if r.has(k) != set[k] {
					t.Fatalf("has(%d) = %v in %v", k, r.has(k), r)
				}
			}
			for i := 1; i < len(r); i++ {
				if r[i].from <= r[i-1].to+1 {
					t.Fatalf("%v is not joined", r)
				}
			}
		}
	})
}

func TestPagesAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pages[int]
		m := map[uint64]int{}
		epoch := uint64(0)
		type frozen struct {
			p pages[int]
			m map[uint64]int
		}
		var old []frozen
		copyOf := func() map[uint64]int {
			c := map[uint64]int{}
			for k, v := range m {
				c[k] = v
			}
			return c
		}
		equal := func(p *pages[int], m map[uint64]int) {
			n, last := 0, int64(-1)
			for k, v := range p.all() {
				if m[k] != *v || int64(k) <= last {
					t.Fatalf("key %d holds %d, want %d", k, *v, m[k])
				}
				n, last = n+1, int64(k)
			}
			if n != len(m) || p.n != n {
				t.Fatalf("%d records, %d counted, want %d", n, p.n, len(m))
			}
			at := rapid.Uint64Range(0, 900).Draw(t, "at")
			prev := at
			for k := range p.below(at) {
				if k >= prev {
					t.Fatalf("below(%d) gave %d after %d", at, k, prev)
				}
				prev = k
				n--
			}
			for k := range m {
				if k >= at {
					n--
				}
			}
			if n != 0 {
				t.Fatalf("below(%d) missed %d", at, n)
			}
		}
		for i := range rapid.IntRange(0, 80).Draw(t, "steps") {
			k := rapid.Uint64Range(0, 800).Draw(t, "key")
			switch _, ok := m[k]; rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				if ok {
					*p.mut(k, epoch) = i
				} else {
					*p.put(k, epoch) = i
				}
				m[k] = i
			case 2:
				if ok {
					p.drop(k, epoch)
					delete(m, k)
				}
			case 3:
				old = append(old, frozen{p.frozen(), copyOf()})
				epoch++
			}
			want, ok := m[k]
			if got := p.get(k); (got != nil) != ok || ok && *got != want {
				t.Fatalf("get(%d), want %d %v", k, want, ok)
			}
		}
		equal(&p, m)
		for i := range old {
			equal(&old[i].p, old[i].m)
		}
	})
}

// TestDeadEntriesAreDropped: a head that nobody can run must not keep what is
// cancelled behind it.
func TestDeadEntriesAreDropped(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", 1))
	for range 1000 {
		w.submit("a", w.job("a", 1))
		w.must("a", &Cancel{Job: JobID{"a", w.num["a"]}, Task: -1})
	}
	q := w.s.byName["a"].lanes[0].queues[0]
	if n := len(q.fresh) + len(q.back); n > 200 {
		t.Fatalf("%d entries for one waiting job", n)
	}
	w.check()
}

// TestStuckWorkCostsLaterEntriesNothing: machines that cannot run a wide job are
// not tried again for every narrow one.
func TestStuckWorkCostsLaterEntriesNothing(t *testing.T) {
	w := newWorld(t, params(), "a")
	cores := make([]int64, 500)
	for i := range cores {
		cores[i] = 2
	}
	w.must("a", w.offering("a", cores...))
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 64_000
	w.submit("a", wide)
	w.submit("a", w.job("a", 3))
	if got := len(w.s.Assignments("a")); got != 3 {
		t.Fatalf("%d assigned, want 3", got)
	}
	x := w.s.byName["a"]
	if x.free.total != 0 || x.stock.total != (1000-3)*1000 {
		t.Fatalf("%d of %d milli-cores would be tried again", x.free.total, x.stock.total)
	}
	w.check()
}

// TestBigArrayStaysSmall: a million tasks are a few runs while they come and go.
func TestBigArrayStaysSmall(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", MaxCount))
	w.must("a", w.offering("a", 100))
	for range 20 {
		var c Complete
		for i, a := range w.s.Assignments("a") {
			if i%7 != 0 {
				c.Attempts = append(c.Attempts, ended(a, Succeeded, 0))
			}
		}
		w.must("a", &c)
	}
	j := w.s.jobs.get(1)
	if n := len(j.tasks.runs); n > 100 || len(j.tasks.records) != 0 {
		t.Fatalf("%d runs, %d records", n, len(j.tasks.records))
	}
	v, _ := w.s.Job(JobID{"a", 1})
	if v.Counts[TaskSucceeded] < 1000 || v.Counts[Queued]+v.Counts[Assigned]+v.Counts[TaskSucceeded] != MaxCount {
		t.Fatalf("%v", v.Counts)
	}
	if n := len(snapshotOf(t, w.s)); n > 20_000 {
		t.Fatalf("the snapshot takes %d bytes", n)
	}
	w.must("a", &Cancel{Job: JobID{"a", 1}, Task: 999_999})
	w.must("a", &Cancel{Job: JobID{"a", 1}, Task: -1})
	if v, _ = w.s.Job(JobID{"a", 1}); v.Counts[Queued] != 0 || v.Counts[Stopping] != 100 {
		t.Fatalf("%v", v.Counts)
	}
}

// TestRecordsAreBounded: over all ended jobs the oldest lose their details first.
func TestRecordsAreBounded(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.must("a", w.offering("a", 30))
	for range 4 {
		w.submit("a", w.job("a", 30))
		var c Complete
		for _, a := range w.s.Assignments("a") {
			c.Attempts = append(c.Attempts, ended(a, Succeeded, 0))
		}
		w.must("a", &c)
	}
	w.s.trim(w.s.sites[0], 65)
	for num, kept := range map[uint64]bool{1: false, 2: false, 3: true, 4: true} {
		v, _ := w.s.Tasks(JobID{"a", num}, 0, 1)
		if v[0].State != TaskSucceeded || (v[0].Site != "") != kept {
			t.Errorf("job %d: %+v, kept %v", num, v[0], kept)
		}
	}
	s, err := reborn(w.s)
	if err != nil || s.sites[0].use.records != 60 {
		t.Fatalf("%v, %d records, want 60", err, s.sites[0].use.records)
	}
	w.submit("a", w.job("a", 1)) // a job without records does not stop the next trim
	a, b := s.sites[0], w.s.sites[0]
	w.s.trim(b, 30)
	if s.trim(a, 30); a.use.records != 30 || b.use.records != 30 {
		t.Fatalf("%d and %d records, want 30", a.use.records, b.use.records)
	}
}
