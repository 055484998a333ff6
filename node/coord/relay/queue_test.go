package relay

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// queueModel is what the queue should hold: for each site a list, and that of the judgements.
type queueModel struct {
	q        callQueue
	now      time.Duration
	next     uint64
	waiting  map[string][]item // "": judgements, "wrong": those of another term
	charged  map[string]int    // bytes taken so far, by site
	passed   map[string]passed // sites whose first call could have been taken
	maxBytes int
}

// passed is how many entries had no call of a site, and how many may.
type passed struct{ entries, bound int }

const modelSites = 7

func newQueueModel(quota Quota) *queueModel {
	return &queueModel{
		q: newCallQueue(quota), waiting: map[string][]item{}, charged: map[string]int{}, passed: map[string]passed{},
		maxBytes: 64 << 10,
	}
}

// submit adds calls of any size of one site.
func (m *queueModel) submit(t *rapid.T) {
	site := fmt.Sprintf("s%d", rapid.IntRange(0, modelSites-1).Draw(t, "site"))
	var items []item
	for range rapid.IntRange(0, 40).Draw(t, "calls") {
		it := item{reports: rapid.Bool().Draw(t, "reports"), calls: []call{{seq: m.next, origin: uint64(site[1])}}, commands: 1}
		it.bytes = rapid.OneOf(rapid.IntRange(1, 300), rapid.IntRange(1, 4<<10), rapid.IntRange(1, 128<<10)).Draw(t, "bytes")
		if rapid.IntRange(0, 9).Draw(t, "many") == 0 {
			it.commands = rapid.IntRange(1, MaxCallCommands).Draw(t, "commands")
		}
		key := site
		if rapid.IntRange(0, 99).Draw(t, "judgement") == 0 {
			it.ahead, it.reports, key = true, false, ""
			if it.term = rapid.Uint64Range(0, 2).Draw(t, "term"); it.term == 2 {
				key = "wrong"
			}
		}
		m.next++
		items = append(items, it)
		m.waiting[key] = append(m.waiting[key], it)
	}
	m.q.submit(m.now, site, items)
}

func (m *queueModel) pass(t *rapid.T) {
	m.now += time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond
}

// pop finds a taken call in front of a list, or the order is wrong.
func (m *queueModel) pop(t *rapid.T, it item) (key string) {
	switch key = fmt.Sprintf("s%c", byte(it.calls[0].origin)); {
	case it.term == 2:
		key = "wrong"
	case it.ahead:
		key = ""
	}
	if len(m.waiting[key]) == 0 || m.waiting[key][0].calls[0].seq != it.calls[0].seq {
		t.Fatalf("call %d of %q is taken, before it waits %v", it.calls[0].seq, key, m.waiting[key][:min(1, len(m.waiting[key]))])
	}
	m.waiting[key] = m.waiting[key][1:]
	return key
}

// bound is after how many entries a site that is within its quota has its turn at the
// latest: each entry takes one lane at least further.
func (m *queueModel) bound(site string) int {
	return modelSites * (1 + max(0, -m.q.lanes[site].credit)/turnWeight)
}

// take fills an entry and compares all of it with the model.
func (m *queueModel) take(t *rapid.T) {
	m.q.freeHeld(m.now)
	could, judged := map[string]passed{}, len(m.waiting[""]) > 0
	for _, l := range m.q.turns {
		p, known := m.passed[l.site]
		if !known {
			p.bound = m.bound(l.site)
		}
		could[l.site] = passed{p.entries + 1, p.bound}
	}
	e, wrong := m.q.take(m.now, 1, m.maxBytes)
	if len(e.items) == 0 && len(could) > 0 {
		t.Fatalf("an empty entry, though %d sites wait", len(could))
	}
	commands, bytes := 0, 0
	for _, it := range wrong {
		if m.pop(t, it) != "wrong" {
			t.Fatalf("refused: %+v", it)
		}
	}
	for i, it := range e.items {
		key := m.pop(t, it)
		if key == "wrong" || key == "" && i > 0 && !e.items[i-1].ahead {
			t.Fatalf("a judgement of term %d is the entry's call %d", it.term, i)
		}
		commands, bytes = commands+it.commands, bytes+it.bytes
		m.charged[key] += it.bytes
		delete(could, key)
		delete(m.passed, key)
	}
	if n := len(e.items); commands != e.commands || bytes != e.bytes ||
		n > 1 && (commands > MaxEntryCommands || bytes > m.maxBytes) {
		t.Fatalf("%d calls with %d commands of %d bytes, said to be %d, %d", n, commands, bytes, e.commands, e.bytes)
	}
	if judged {
		return // it took room from the turns
	}
	m.passed = could
	for site, p := range could {
		if p.entries >= p.bound {
			t.Fatalf("%s was passed over in %d entries, want less than %d", site, p.entries, p.bound)
		}
	}
}

// check compares what waits, and what the sites had of their quotas.
func (m *queueModel) check(t *rapid.T) {
	var all load
	all.addAll(m.q.ahead.load)
	for _, l := range m.q.turns {
		if l.load.calls == 0 || l.isHeld || l.credit > turnWeight {
			t.Fatalf("%s takes turns: %+v", l.site, l)
		}
		all.addAll(l.load)
	}
	if all != m.q.load {
		t.Fatalf("%+v waits, but %+v is counted", all, m.q.load)
	}
	for _, l := range m.q.held {
		all.addAll(l.load)
	}
	var want load
	for _, items := range m.waiting {
		for i := range items {
			want.add(&items[i])
		}
	}
	if all != want {
		t.Fatalf("%+v waits, want %+v", all, want)
	}
	quota := m.q.quota
	for site, bytes := range m.charged {
		limit := int((m.now+quota.Burst).Milliseconds())*quota.Bytes/1000 + turnWeight + 128<<10
		if site != "" && quota.Bytes > 0 && bytes > limit {
			t.Fatalf("%s had %d bytes ordered after %v, its quota are %d", site, bytes, m.now, limit)
		}
	}
}

// TestQueueByModel: the calls of a site come out in order, none is lost or split, no
// site has more than its quota, and who is within it is not passed over for long,
// whatever the others do.
func TestQueueByModel(t *testing.T) {
	for name, quota := range map[string]Quota{
		"no quota": {},
		"quota":    {Commands: 4000, Bytes: 200 << 10, Burst: time.Second / 2},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := newQueueModel(quota)
				t.Repeat(map[string]func(*rapid.T){
					"submit": m.submit, "submit more": m.submit, "take": m.take, "pass": m.pass, "": m.check,
				})
				for n := m.next; m.q.load.calls > 0 || len(m.q.held) > 0; n-- {
					if at, ok := m.q.nextFree(); ok && m.q.load.calls == 0 {
						m.now = max(m.now, at)
					}
					if m.take(t); n == 0 {
						t.Fatal("calls stay in the queue")
					}
				}
				m.check(t)
			})
		})
	}
}

// TestLargeCallsOwe: a site with calls of a whole entry has one and then none until the
// others had as much; what it used while nobody else waited is forgotten.
func TestLargeCallsOwe(t *testing.T) {
	q := newCallQueue(Quota{})
	large := item{calls: []call{{origin: 1}}, commands: 1, bytes: 64 << 10}
	small := item{calls: []call{{origin: 2}}, commands: 1, bytes: 1 << 10}
	submit := func(site string, it item, n int) {
		for range n {
			q.submit(0, site, []item{it})
		}
	}
	shape := func() (large, small int) {
		e, _ := q.take(0, 1, 64<<10)
		for _, it := range e.items {
			if it.calls[0].origin == 1 {
				large++
			} else {
				small++
			}
		}
		return large, small
	}
	submit("a", large, 3)
	for range 3 {
		if l, s := shape(); l != 1 || s != 0 {
			t.Fatalf("alone: %d large calls and %d small ones in an entry", l, s)
		}
	}
	submit("a", large, 4)
	submit("b", small, 1000)
	total := 0
	for range 9 {
		l, s := shape()
		if total += s; s > 0 && l > 0 {
			t.Fatalf("%d large calls beside %d small ones", l, s)
		}
	}
	if waits := q.lanes["a"].load.calls; waits > 0 || total < 250 || total > 400 {
		t.Errorf("beside 4 large calls %d small ones of as much each went, and %d large ones wait", total, waits)
	}
}

// TestRotationMovesOn: no site is always first in an entry; where calls are left over
// the next entry goes on behind them.
func TestRotationMovesOn(t *testing.T) {
	q := newCallQueue(Quota{})
	entry := func(calls ...string) (order string) {
		for _, site := range calls {
			q.submit(0, site, []item{{calls: []call{{origin: uint64(site[0])}}, commands: 1, bytes: 6 << 10}})
		}
		e, _ := q.take(0, 1, 18<<10)
		for _, it := range e.items {
			order += string(rune(it.calls[0].origin))
		}
		return order
	}
	for i, c := range []struct {
		calls []string
		want  string
	}{
		{[]string{"c", "b", "a"}, "abc"},
		{[]string{"a", "b", "c"}, "bca"},
		{[]string{"a", "b", "c"}, "cab"},
		{[]string{"a", "c"}, "ac"},
		{[]string{"a", "b", "c", "d", "e"}, "bcd"},
		{[]string{"b"}, "eab"},
		{[]string{"a", "e"}, "ae"},
	} {
		if got := entry(c.calls...); got != c.want {
			t.Errorf("entry %d has %s, want %s", i, got, c.want)
		}
	}
}

// TestForgottenLanes: names come and go; what is kept of them is bounded, and no quota is
// forgotten for it.
func TestForgottenLanes(t *testing.T) {
	q := newCallQueue(Quota{Commands: 10, Burst: time.Second})
	one := []item{{commands: 100, bytes: 1}}
	q.submit(0, "busy", one)
	q.take(0, 1, 1<<20)
	for i := range 10_000 {
		q.submit(0, fmt.Sprint(i), []item{{bytes: 1}})
		q.take(0, 1, 1<<20)
	}
	if len(q.lanes) > 2*minLanes {
		t.Errorf("%d lanes are kept", len(q.lanes))
	}
	if q.submit(0, "busy", one); len(q.held) != 1 {
		t.Error("a site's quota was forgotten")
	}
}
