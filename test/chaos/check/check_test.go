package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// script makes marks of lines "what job task attempt token site ms [code]"; the
// process is told by its attempt, token and site.
func script(t *testing.T, text string) Marks {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		f := strings.Fields(line)
		if len(f) == 7 {
			f = append(f, "0")
		}
		fmt.Fprintf(&out, "%s %s %s %s %s %s 100 %s000000 %s\n", f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7])
	}
	m, err := ReadMarks(out.String())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rules of the violations found, in order.
func rules(list []Violation) string {
	var out []string
	for _, v := range list {
		out = append(out, string(v.Rule))
	}
	return strings.Join(out, " ")
}

func TestReadMarks(t *testing.T) {
	m := script(t, `
		start a.1 0 1 10 a 1000
		start a.1 0 2 20 b 1500
		beat  a.1 0 1 10 a 1100
		end   a.1 0 2 20 b 1900 7`)
	got := m.Of("a.1", 0)
	if len(got) != 2 || got[0].Ended || got[0].Length().Milliseconds() != 100 || !got[1].Ended || got[1].Code != 7 {
		t.Errorf("%+v", got)
	}
	for name, text := range map[string]string{
		"cut off":  "start a.1 0 1 10 a start a.1 0 2 10 a 100 1000 0\n",
		"too few":  "start a.1 0 1 10 a 100 1000\n",
		"no count": "start a.1 x 1 10 a 100 1000 0\n",
		"no token": "start a.1 0 1 -1 a 100 1000 0\n",
	} {
		if _, err := ReadMarks(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Found by a run of chaos: an append that crossed a page was read when half of it was there.
func TestMarkThatIsBeingWrittenIsLeftOut(t *testing.T) {
	m, err := ReadMarks("start a.1 0 1 10 a 100 1000 0\nbeat a.1 0 1 10 a ")
	if got := m.Of("a.1", 0); err != nil || len(got) != 1 || got[0].Last != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTasks(t *testing.T) {
	const over = `
		start a.1 0 1 10 a 1000
		start a.1 0 2 20 b 1500
		beat  a.1 0 1 10 a 1600`
	const after = `
		start a.1 0 1 10 a 1000
		beat  a.1 0 1 10 a 1400
		start a.1 0 2 20 b 1500`
	const failed = `
		start a.1 0 1 10 a 1000
		end   a.1 0 1 10 a 1400 7
		start a.1 0 2 20 b 1500`
	for _, c := range []struct {
		name, onLoss, marks, want string
		cancelled                 uint64
	}{
		{"assigned before its cancel", Fenced, after, "", 20},
		{"assigned after its cancel", Fenced, after, "cancelled", 19},
		{"overlap", Fenced, over, "overlap", 0},
		{"overlap of idempotent work", Immediate, over, "", 0},
		{"one after the other", Fenced, after, "", 0},
		{"never after a loss", Never, after, "twice", 0},
		{"never after a failure", Never, failed, "", 0},
		{"one token twice", Fenced, "start a.1 0 1 10 a 1000\nstart a.1 0 1 10 b 2000", "token-grow", 0},
		{"a smaller token", Fenced, "start a.1 0 1 20 a 1000\nstart a.1 0 2 10 b 2000", "token-grow", 0},
		{"two home starts at one entry", Fenced, "start a.1 0 1 10 a 1000\nstart a.1 0 2 10 a 2000", "", 0},
	} {
		o := Ordered{OnLoss: c.onLoss, Count: 1, Exit: 7, Tries: 2, Cancelled: c.cancelled}
		if got := rules(Tasks(o, "a.1", script(t, c.marks))); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestEnd(t *testing.T) {
	marks := script(t, `
		start a.1 0 1 10 a 1000
		beat  a.1 0 1 10 a 1400
		start a.1 0 2 20 b 2000
		end   a.1 0 2 20 b 2500 0`)
	shown := func(state string, attempt int, token uint64) Shown {
		return Shown{ID: "a.1", State: state, Tasks: []ShownTask{{State: state, Attempt: attempt, Token: token, Site: "b"}}}
	}
	for _, c := range []struct {
		name  string
		shown Shown
		want  string
	}{
		{"as it was", shown("succeeded", 2, 20), ""},
		{"not ended", shown("running", 2, 20), "one-end"},
		{"the end of an old attempt", shown("succeeded", 1, 10), "true-end"},
		{"an attempt that never was", shown("succeeded", 3, 30), "true-end"},
		{"failed, though it exits with 0", shown("failed", 2, 20), "true-end"},
		{"cancelled by nobody", shown("cancelled", 2, 20), "true-end"},
		{"given up too early", shown("lost", 2, 20), "true-end"},
		{"a task missing", Shown{ID: "a.1", State: "succeeded"}, "one-end"},
		{"a task open in an ended job", Shown{ID: "a.1", State: "succeeded", Tasks: []ShownTask{{State: "queued"}}}, "one-end"},
	} {
		if got := rules(Honesty{}.End(Ordered{OnLoss: Fenced, Count: 1}, c.shown, marks)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	overlapped := script(t, `
		start a.1 0 1 10 a 1000
		start a.1 0 2 20 b 2000
		end   a.1 0 1 10 a 2200 0
		end   a.1 0 2 20 b 2500 0`)
	for onLoss, want := range map[string]string{Fenced: "true-end", Immediate: ""} {
		if got := rules(Honesty{}.End(Ordered{OnLoss: onLoss, Count: 1}, shown("succeeded", 1, 10), overlapped)); got != want {
			t.Errorf("the first success of a task that is %s: found %q, want %q", onLoss, got, want)
		}
	}
}

func TestAcknowledgedAndKnown(t *testing.T) {
	good := []Ordered{{Name: "x", Owner: "a", IDs: []string{"a.1", "a.1"}}}
	for _, c := range []struct {
		name   string
		orders []Ordered
		shown  []Shown
		want   string
	}{
		{"as it should be", good, []Shown{{ID: "a.1", Name: "x"}}, ""},
		{"two ids for one key", []Ordered{{Name: "x", IDs: []string{"a.1", "a.2"}}}, []Shown{{ID: "a.1", Name: "x"}, {ID: "a.2", Name: "x"}}, "one-job one-job"},
		{"forgotten", good, nil, "one-end"},
		{"two jobs of one name", good, []Shown{{ID: "a.1", Name: "x"}, {ID: "a.2", Name: "x"}}, "one-job"},
		{"from nobody", good, []Shown{{ID: "a.1", Name: "x"}, {ID: "a.2", Name: "y"}}, "one-job"},
		{"one id for two", []Ordered{{Name: "x", IDs: []string{"a.1"}}, {Name: "y", IDs: []string{"a.1"}}}, []Shown{{ID: "a.1", Name: "x"}}, "one-job one-end"},
		{"never answered", []Ordered{{Name: "x"}}, nil, "progress"},
		{"refused", []Ordered{{Name: "x", Refused: "HTTP 400"}}, nil, "no-error"},
	} {
		if got := rules(append(Acknowledged(c.orders), Known(c.orders, c.shown)...)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSteadyEnds(t *testing.T) {
	var s Steady
	seen := slices.Concat(s.See("a", "a.1", "running"), s.See("a", "a.1", "failed"), s.See("b", "a.1", "running"), s.See("b", "a.1", "failed"))
	if len(seen) > 0 {
		t.Errorf("%v", seen)
	}
	if got := rules(s.See("b", "a.1", "succeeded")); got != "one-end" {
		t.Errorf("a second end: %q", got)
	}
}

func TestHashes(t *testing.T) {
	var h Hashes
	if seen := slices.Concat(h.See("a", 3, "x"), h.See("b", 3, "x"), h.See("b", 4, "y"), h.See("b", 4, "y")); len(seen) > 0 ||
		h.Compared() != 1 {
		t.Errorf("%v", seen)
	}
	if got := rules(h.See("c", 4, "z")); got != "same-state" {
		t.Errorf("two hashes: %q", got)
	}
}

func TestLedger(t *testing.T) {
	marks := script(t, `
		start z.1 0 1 1 z 1000
		start a.1 0 1 10 b 20000
		beat  a.1 0 1 10 b 20400
		start a.1 0 2 20 b 21000
		end   a.1 0 2 20 b 21500 0`)
	shown := []Shown{{ID: "a.1", Tasks: []ShownTask{{State: "succeeded", Attempt: 2, Token: 20, Site: "b", RunMs: 510}}}}
	owners := map[string]string{"a.1": "a"}
	cell := func(tasks uint64, ms int) []Cell {
		return []Cell{{Owner: "a", Executor: "b", Tasks: tasks, A: fmt.Sprint(ms * 1000)}}
	}
	for _, c := range []struct {
		name   string
		matrix []Cell
		want   string
	}{
		{"the last attempt alone", cell(1, 510), ""},
		{"the lost one charged too", cell(2, 910), ""},
		{"nothing", nil, "recount"},
		{"too little", cell(1, 400), "recount"},
		{"too much", cell(2, 9000), "recount"},
		{"too many", cell(3, 910), "recount"},
		{"not a number", []Cell{{Owner: "a", Executor: "b", Tasks: 1, A: "x"}}, "recount"},
		{"runs that never were", append(cell(1, 510), Cell{Owner: "b", Executor: "a", Tasks: 1, A: "5"}), "recount"},
	} {
		if got := rules(Ledger{Broker: "b", Matrix: c.matrix}.Recount(owners, shown, marks)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	early := script(t, "start a.1 0 2 20 b 1000\nend a.1 0 2 20 b 1500")
	if got := rules(Ledger{Broker: "b", Matrix: cell(1, 100)}.Recount(owners, shown, early)); got != "" {
		t.Errorf("a run before log time began, cut: found %q", got)
	}
	for priorities, want := range map[[2]string]string{{"5", "-5"}: "", {"5", "-4"}: "zero-sum", {"5", "?"}: "zero-sum"} {
		l := Ledger{Priorities: map[string]string{"a": priorities[0], "b": priorities[1]}}
		if got := rules(l.Zero()); got != want {
			t.Errorf("%v: found %q, want %q", priorities, got, want)
		}
	}
}

// TestHonesty: nothing that only a hostile site could have done right is a broken promise, and all that honest ones
// have between them is judged.
func TestHonesty(t *testing.T) {
	h := Honesty{Hostile: "c"}
	marks := script(t, `
		start a.1 0 1 10 c 1000
		beat  a.1 0 1 10 c 9000
		start a.1 0 2 20 b 2000
		start a.1 0 3 30 a 2500
		beat  a.1 0 2 20 b 3000
		start c.1 0 1 11 b 1000
		beat  c.1 0 1 11 b 5000`)
	owner := func(job string) string { return job[:1] }
	honest := h.Marks(marks, owner)
	if got := honest.Jobs(); !slices.Equal(got, []string{"a.1"}) {
		t.Errorf("marks of %v", got)
	}
	o := Ordered{Owner: "a", OnLoss: Fenced, Count: 1}
	if got := rules(Tasks(o, "a.1", marks)); got != "overlap overlap overlap" {
		t.Errorf("of all: %q", got)
	}
	if got := rules(Tasks(o, "a.1", honest)); got != "overlap" {
		t.Errorf("of honest ones: %q", got)
	}
	if got := h.Ordered([]Ordered{o, {Owner: "c"}}); len(got) != 1 || got[0].Owner != "a" {
		t.Errorf("%v", got)
	}
	for site, want := range map[string]string{"c": "", "b": "true-end"} {
		shown := Shown{ID: "a.1", State: "succeeded", Tasks: []ShownTask{{State: "succeeded", Attempt: 9, Token: 99, Site: site}}}
		if got := rules(h.End(o, shown, honest)); got != want {
			t.Errorf("an end that is invented by %s: %q", site, got)
		}
	}
	l := h.Ledger(Ledger{Matrix: []Cell{{Owner: "a", Executor: "b"}, {Owner: "a", Executor: "c"}, {Owner: "c", Executor: "b"}}})
	if len(l.Matrix) != 1 {
		t.Errorf("%v", l.Matrix)
	}
}

// TestMovedAttemptIsNotExcused: an invented end of what an honest site ran is found, though it is shown as the hostile
// one's.
func TestMovedAttemptIsNotExcused(t *testing.T) {
	h, o := Honesty{Hostile: "c"}, Ordered{Owner: "a", OnLoss: Fenced, Count: 1}
	honest := script(t, `
		start a.1 0 1 10 b 1000
		beat  a.1 0 1 10 b 3000`)
	for _, c := range []struct {
		attempt int
		token   uint64
		want    string
	}{{1, 10, "true-end"}, {1, 11, ""}, {2, 10, ""}} {
		shown := Shown{ID: "a.1", State: "succeeded", Tasks: []ShownTask{
			{State: "succeeded", Attempt: c.attempt, Token: c.token, Site: "c"},
		}}
		if got := rules(h.End(o, shown, honest)); got != c.want {
			t.Errorf("attempt %d token %d: %q, want %q", c.attempt, c.token, got, c.want)
		}
	}
}
