package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Attempt is what the marks of one process say. Times are CLOCK_BOOTTIME in
// nanoseconds, one clock for all sites of one machine.
type Attempt struct {
	Job           string
	Task, Attempt int
	Token         uint64
	Site          string
	PID           int
	// Start is its first act. Last is its last mark: if it has not ended, it
	// ran at least until then.
	Start, Last int64
	Left        int64 // the last mark of what it left behind, 0 = none
	Term        int64 // when TERM came, 0 = never
	Ended       bool
	Code        int // its exit code, once ended
}

// Length returns how long it ran, as far as its marks show.
func (a Attempt) Length() time.Duration { return time.Duration(a.Last - a.Start) }

// String names it in violations.
func (a Attempt) String() string {
	return fmt.Sprintf("%s/%d attempt %d token %d at %s (pid %d)", a.Job, a.Task, a.Attempt, a.Token, a.Site, a.PID)
}

// task names what attempts compete for.
type task struct {
	job   string
	index int
}

// Marks are all attempts of a run, by task, each list in order of start.
type Marks struct {
	tasks map[task][]Attempt
	first int64 // time of the first mark
}

// Jobs returns the jobs that left marks, sorted.
func (m Marks) Jobs() []string {
	var out []string
	for t := range m.tasks {
		out = append(out, t.job)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Of returns the attempts of one task in order of start.
func (m Marks) Of(job string, index int) []Attempt { return m.tasks[task{job, index}] }

// All returns every attempt, by job, task and start.
func (m Marks) All() []Attempt {
	var out []Attempt
	for _, list := range m.tasks {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Start, b.Start))
	})
	return out
}

// ReadMarks parses the file that all tasks share. A line that is not a mark is
// an error: appends are whole. A last line without an end is still being written: a
// reader beside an append that crosses a page sees the first page's part before the rest.
func ReadMarks(text string) (Marks, error) {
	type process struct {
		site string
		pid  int
		of   task
		n    string // attempt and token
	}
	found := map[process]*Attempt{}
	for line := range strings.Lines(text[:strings.LastIndexByte(text, '\n')+1]) {
		what, a, err := parseMark(line)
		if err != nil {
			return Marks{}, err
		}
		p := process{a.Site, a.PID, task{a.Job, a.Task}, fmt.Sprint(a.Attempt, " ", a.Token)}
		old := found[p]
		if old == nil {
			a.Start = a.Last
			old = &a
			found[p] = old
		}
		if what == "left" {
			old.Left = a.Last
			continue
		}
		old.Last = a.Last
		switch what {
		case "term":
			old.Term = a.Last
		case "end":
			old.Ended, old.Code = true, a.Code
		}
	}
	m := Marks{tasks: map[task][]Attempt{}}
	for p, a := range found {
		m.tasks[p.of] = append(m.tasks[p.of], *a)
		if m.first == 0 || a.Start < m.first {
			m.first = a.Start
		}
	}
	for _, list := range m.tasks {
		slices.SortFunc(list, func(a, b Attempt) int { return cmp.Compare(a.Start, b.Start) })
	}
	return m, nil
}

// parseMark reads one line; its time is in Last.
func parseMark(line string) (what string, a Attempt, err error) {
	f := strings.Fields(line)
	if len(f) != 9 || !strings.HasSuffix(line, "\n") {
		return "", a, fmt.Errorf("mark %q: want nine fields and an end of line", line)
	}
	a.Job, a.Site = f[1], f[5]
	number := func(text string) int64 {
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("mark %q: %w", line, e)
		}
		return n
	}
	a.Task, a.Attempt, a.PID, a.Last, a.Code = int(number(f[2])), int(number(f[3])), int(number(f[6])), number(f[7]),
		int(number(f[8]))
	token, e := strconv.ParseUint(f[4], 10, 64)
	if e != nil && err == nil {
		err = fmt.Errorf("mark %q: %w", line, e)
	}
	a.Token = token
	return f[0], a, err
}
