package check

import (
	"testing"
	"time"
)

// two is a run of a job that is waited for, a.1, of two tasks, and of the one that waits, a.2: task 0 of a.1 has
// succeeded at 1500, task 1 at 1900 or otherwise.
type two struct {
	first, second Shown
	onLoss        string
	after         []Wait
	cancel        bool
	marks         string
}

const firstMarks = `
	start a.1 0 1 10 a 1000
	end   a.1 0 1 10 a 1500 0
	start a.1 1 1 10 a 1000
	end   a.1 1 1 10 a 1900 0`

func tasksIn(states ...string) (out []ShownTask) {
	for i, state := range states {
		out = append(out, ShownTask{Index: i, State: state, Attempt: 1, Token: 10})
	}
	return out
}

// judge returns what is found of the second job.
func (c two) judge(t *testing.T) string {
	t.Helper()
	c.first.ID, c.second.ID = "a.1", "a.2"
	orders := []Ordered{
		{IDs: []string{"a.1", "a.1"}, Count: 2, OnLoss: c.onLoss},
		{IDs: []string{"a.2"}, Count: len(c.second.Tasks), OnLoss: Fenced, After: c.after, Cancel: c.cancel},
	}
	f := NewFlow(orders, []Shown{c.first, c.second}, script(t, firstMarks+c.marks))
	orders[1].Vain = f.Vain(orders[1])
	found := append(f.Judge(orders[1], "a.2"), Honesty{}.End(orders[1], c.second, script(t, c.marks+"\nstart z.1 0 1 1 z 1"))...)
	return rules(found)
}

func TestNothingStartsEarly(t *testing.T) {
	done := Shown{State: "succeeded", Tasks: tasksIn("succeeded", "succeeded")}
	half := Shown{State: "failed", Tasks: tasksIn("succeeded", "failed")}
	lost := Shown{State: "lost", Tasks: tasksIn("succeeded", "lost")}
	ran := func(ms string) string { return "\nstart a.2 0 1 10 b " + ms + "\nend a.2 0 1 10 b 3000 0" }
	one := Shown{State: "succeeded", Tasks: tasksIn("succeeded")}
	for _, c := range []struct {
		name string
		two
		want string
	}{
		{"after all of it", two{done, one, Fenced, []Wait{{"a.1", WhenOK}}, false, ran("1901")}, ""},
		{"before the last of it", two{done, one, Fenced, []Wait{{"a.1", WhenOK}}, false, ran("1899")}, "early"},
		{"after any end", two{half, one, Fenced, []Wait{{"a.1", WhenAny}}, false, ran("1901")}, ""},
		{"before any end", two{half, one, Fenced, []Wait{{"a.1", WhenAny}}, false, ran("1899")}, "early"},
		{"after an end without success", two{half, one, Fenced, []Wait{{"a.1", WhenNotOK}}, false, ran("1901")}, ""},
		{"after a success that was not to be", two{done, one, Fenced, []Wait{{"a.1", WhenNotOK}}, false, ran("1901")}, "early in-vain"},
		{"after no success", two{half, one, Fenced, []Wait{{"a.1", WhenOK}}, false, ran("1901")}, "early in-vain"},
		{"while what was lost left marks", two{lost, one, Fenced, []Wait{{"a.1", WhenAny}}, false, ran("1899")}, "early"},
		{"while what was given up left marks", two{lost, one, Immediate, []Wait{{"a.1", WhenAny}}, false, ran("1899")}, ""},
		{"after its own element", two{half, one, Fenced, []Wait{{"a.1", WhenEach}}, false, ran("1501")}, ""},
		{"before its own element", two{half, one, Fenced, []Wait{{"a.1", WhenEach}}, false, ran("1499")}, "early"},
		{"one of several", two{done, one, Fenced, []Wait{{"a.9", WhenOK}, {"a.1", WhenOK}}, false, ran("1700")}, "early"},
		{
			"what has not ended",
			two{Shown{State: "running", Tasks: tasksIn("succeeded", "running")}, one, Fenced, []Wait{{"a.1", WhenAny}}, false, ran("2000")},
			"early",
		},
	} {
		if got := c.judge(t); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWaitsInVain(t *testing.T) {
	half := Shown{State: "failed", Tasks: tasksIn("succeeded", "failed")}
	ended := func(state, reason string) Shown {
		return Shown{State: state, Tasks: []ShownTask{{State: state, Reason: reason}}}
	}
	const reason = "waited in vain for a.1 to succeed: it has failed"
	on := []Wait{{"a.1", WhenOK}}
	for _, c := range []struct {
		name string
		two
		want string
	}{
		{"cancelled for that", two{half, ended("cancelled", reason), Fenced, on, false, ""}, ""},
		{"cancelled for another reason", two{half, ended("cancelled", "waited in vain for a.11 to succeed"), Fenced, on, false, ""}, "in-vain"},
		{"cancelled by its user before", two{half, ended("cancelled", "by its user"), Fenced, on, true, ""}, ""},
		{"lost", two{half, ended("lost", ""), Fenced, on, false, ""}, "in-vain true-end"},
		{"cancelled, and could have begun", two{half, ended("cancelled", reason), Fenced, []Wait{{"a.1", WhenAny}}, false, ""}, "true-end"},
		{"waits forever", two{half, ended("queued", ""), Fenced, on, false, ""}, "in-vain one-end"},
		{"for its element", two{half, Shown{State: "cancelled", Tasks: []ShownTask{
			{State: "cancelled", Reason: "it has 2 tasks, one by one"}, {Index: 1, State: "cancelled", Reason: "waited for the task at its place of job a.1, which did not succeed"},
		}}, Fenced, []Wait{{"a.1", WhenEach}}, false, ""}, "true-end"},
	} {
		if got := c.judge(t); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestParallel(t *testing.T) {
	marks := script(t, `
		start a.1 0 1 10 a 1000
		end   a.1 0 1 10 a 2000 0
		start a.1 1 1 11 b 1200
		beat  a.1 1 1 11 b 1600
		start a.1 2 1 12 b 1601
		beat  a.1 2 1 12 b 1700
		start a.1 1 2 13 c 1602`)
	for _, c := range []struct {
		onLoss   string
		parallel int
		want     string
	}{
		{Fenced, 0, ""}, {Fenced, 3, ""}, {Never, 2, "parallel"}, {Fenced, 2, "parallel"}, {Fenced, 1, "parallel"}, {Immediate, 1, ""},
	} {
		if got := rules(crowds(Ordered{Count: 3, Parallel: c.parallel, OnLoss: c.onLoss}, "a.1", marks)); got != c.want {
			t.Errorf("%+v: found %q", c, got)
		}
	}
}

func TestRetries(t *testing.T) {
	marks := func(second, third string) []Attempt {
		return script(t, `
			start a.1 0 1 10 a 1000
			end   a.1 0 1 10 a 1100 7
			start a.1 0 2 20 b `+second+`
			end   a.1 0 2 20 b 3000 7
			start a.1 0 3 30 b `+third+`
			end   a.1 0 3 30 b 9000 7`).Of("a.1", 0)
	}
	failed := ShownTask{State: "failed", Attempt: 3, Token: 30}
	for _, c := range []struct {
		name          string
		second, third string
		task          ShownTask
		tries         int
		barred        bool
		want          string
	}{
		{"after its pauses", "2000", "5000", failed, 3, false, ""},
		{"too early", "1500", "5000", failed, 3, false, "retries"},
		{"too early again", "2000", "4000", failed, 3, false, "retries"},
		{"one may have been lost", "1101", "5000", failed, 2, false, ""},
		{"it has not failed", "1101", "5000", ShownTask{State: "cancelled"}, 3, false, ""},
	} {
		o := Ordered{Exit: 7, Tries: c.tries, Backoff: time.Second, Barred: c.barred}
		if got := rules(retries(o, "a.1", c.task, marks(c.second, c.third))); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	for reason, want := range map[string]string{
		"exit 7, after which it is not tried again (retry.only_on has others)": "", "exit code 7": "retries",
	} {
		o := Ordered{Exit: 7, Tries: 1, Barred: true}
		if got := rules(retries(o, "a.1", ShownTask{State: "failed", Reason: reason}, marks("2000", "5000")[:1])); got != want {
			t.Errorf("%s: found %q, want %q", reason, got, want)
		}
	}
}
