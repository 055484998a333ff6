package notices

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestTurns: whatever comes and goes, nothing is sent before its time or twice at once, no bound is passed, and what
// may go does.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &turnsModel{turns: newTurns(), waits: map[ref]dueNotice{}, going: map[ref]*lane{}, of: map[ref][2]string{}}
		rt.Repeat(map[string]func(*rapid.T){
			"add": m.add, "add2": m.add, "next": m.next, "next2": m.next, "next3": m.next, "done": m.done, "later": m.later,
			"": m.check,
		})
	})
}

type turnsModel struct {
	turns *turns
	now   int64
	num   uint64
	waits map[ref]dueNotice
	going map[ref]*lane
	of    map[ref][2]string
}

func (m *turnsModel) add(t *rapid.T) {
	m.num++
	d := dueNotice{ref{m.num, 0}, m.now + rapid.Int64Range(-5, 50).Draw(t, "in")}
	user := rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(t, "user")
	host := fmt.Sprint("h", rapid.IntRange(0, 9).Draw(t, "host"))
	m.waits[d.ref], m.of[d.ref] = d, [2]string{user, host}
	m.turns.add(user, host, d)
}

func (m *turnsModel) later(t *rapid.T) { m.now += rapid.Int64Range(1, 5000).Draw(t, "ms") }

func (m *turnsModel) users() map[string]int {
	n := map[string]int{}
	for _, l := range m.going {
		n[l.user]++
	}
	return n
}

func (m *turnsModel) next(t *rapid.T) {
	r, l, wait := m.turns.next(m.now)
	if l == nil {
		if wait == 0 || wait < 0 {
			m.mayNot(t)
		}
		return
	}
	d, waits := m.waits[r]
	if !waits || d.when > m.now || m.of[r] != [2]string{l.user, l.host} {
		t.Fatalf("%v goes at %d: %+v", r, m.now, d)
	}
	delete(m.waits, r)
	m.going[r] = l
}

// mayNot fails if something could go that does not.
func (m *turnsModel) mayNot(t *rapid.T) {
	for r := range m.waits {
		l := m.turns.lanes[m.of[r]]
		if len(m.going) < atOnce && m.users()[l.user] < atOnceUser && l.going < l.most() {
			t.Fatalf("%v does not go, nor is it waited for", r)
		}
	}
}

func (m *turnsModel) done(t *rapid.T) {
	for r, l := range m.going {
		delete(m.going, r)
		again := int64(0)
		if rapid.Bool().Draw(t, "again") {
			again = m.now + rapid.Int64Range(1, 100).Draw(t, "in")
			m.waits[r] = dueNotice{r, again}
		}
		m.turns.done(l, r, outcome{away: rapid.Bool().Draw(t, "away")}, again, m.now)
		return
	}
}

func (m *turnsModel) check(t *rapid.T) {
	lanes := map[*lane]int{}
	for _, l := range m.going {
		lanes[l]++
	}
	for l, n := range lanes {
		if n > atOnceLane || n != l.going {
			t.Fatalf("%d under way of %s to %s, counted %d", n, l.user, l.host, l.going)
		}
	}
	for user, n := range m.users() {
		if n > atOnceUser || n != m.turns.users[user] {
			t.Fatalf("%d under way of %s, counted %d", n, user, m.turns.users[user])
		}
	}
	if len(m.going) > atOnce || len(m.going) != m.turns.going {
		t.Fatalf("%d under way, counted %d", len(m.going), m.turns.going)
	}
	waiting := 0
	for key, l := range m.turns.lanes {
		if len(l.line) == 0 && l.going == 0 {
			t.Fatalf("lane %v is empty", key)
		}
		waiting += len(l.line)
	}
	if waiting != len(m.waits) {
		t.Fatalf("%d wait, %d do", len(m.waits), waiting)
	}
}

// TestRestingHostsAreLeft: those of a host that cannot be reached are given up without their turn, the others are not.
func TestRestingHostsAreLeft(t *testing.T) {
	m := newTurns()
	for num := range uint64(4) {
		m.add("", fmt.Sprint("h", num%2), dueNotice{ref: ref{num, 0}})
	}
	r, l, _ := m.next(0)
	m.done(l, r, outcome{away: true}, 5000, 0)
	var gone []ref
	m.resting(func(r ref) bool { gone = append(gone, r); return true })
	if len(gone) != 2 || len(m.lanes) != 1 {
		t.Errorf("%v are gone, %d lanes are left", gone, len(m.lanes))
	}
}
