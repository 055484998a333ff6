package web

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Found by users: a site of one core had two lanes, and what was cancelled looked
// as if it had failed.
func TestLanesAndEndings(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 30, 0, 0, time.UTC)
	outcomes := []string{"succeeded", "failed", "lost", "timed-out", "cancelled", "stopped", "declined", ""}
	classes := map[string]string{"succeeded": worked, "failed": broke, "lost": broke, "timed-out": broke, "cancelled": halted, "stopped": halted, "declined": halted, "": worked}
	for cores := 1; cores <= 16; cores++ {
		var h ofMany
		for i := range 600 {
			at := now.Add(-time.Duration(600-i) * 2 * time.Second)
			h.list = append(h.list, Attempt{
				Site: "site-1", Started: at, Ended: at.Add(time.Duration(1+i*7%23) * time.Second),
				Outcome: outcomes[i%len(outcomes)],
			})
		}
		v := timelineView{Since: 30 * time.Minute}
		v.draw(t.Context(), h, map[string]int{"site-1": cores}, now)
		at := map[int]bool{} // where lanes are
		for _, b := range v.Gantt.Rows[0].Bars {
			if b.Class != crowded {
				at[b.Y] = true
			}
		}
		if len(at) > min(cores, maxLanes) || len(at) == 0 {
			t.Errorf("%d lanes of %d cores", len(at), cores)
		}
		if cores < 4 && v.Short == 0 || len(v.Gantt.Marks()) < 3 {
			t.Errorf("%d cores: %d are left over; the legend has %v", cores, v.Short, v.Gantt.Marks())
		}
	}
	for outcome, class := range classes {
		if got := endOf(&Attempt{Ended: now, Outcome: outcome}); got != class {
			t.Errorf("%q is drawn as %s, want %s", outcome, got, class)
		}
	}
	if got := endOf(&Attempt{}); got != runs {
		t.Errorf("what runs is drawn as %s", got)
	}
}

// One after another on one core, ends told by another clock than starts.
func TestLanesOneAfterAnother(t *testing.T) {
	one := lanesOf(1)
	at := time.Date(2026, 5, 4, 10, 30, 0, 0, time.UTC)
	for range 50 {
		end := at.Add(time.Second)
		if lane, ok := one.place(at, end.Add(slack/2)); lane != 0 || !ok {
			t.Fatal("a second lane")
		}
		at = end
	}
	if _, ok := one.place(at.Add(-slack), at); ok {
		t.Error("two at the same time on one core")
	}
}

// ofMany are attempts of one site, one after another.
type ofMany struct {
	History
	list []Attempt
}

func (h ofMany) Attempts(context.Context, time.Time, string, int) []Attempt { return h.list }

// Found by review: under load the timeline showed its last minute only, and said
// of tasks one after another that they ran at the same time.
func TestTimelineOfManyShortTasks(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 30, 0, 0, time.UTC)
	var h ofMany
	for i := range 10_000 { // half an hour of them, a pause in the middle, and one long one
		at := now.Add(-time.Duration(i) * 180 * time.Millisecond)
		if i < 4000 || i > 6000 {
			h.list = append(h.list, Attempt{Site: "site-1", Started: at, Ended: at.Add(20 * time.Millisecond)})
		}
	}
	h.list = append(h.list, Attempt{Site: "site-1", Started: now.Add(-25 * time.Minute), Ended: now.Add(-15 * time.Minute)})
	v := timelineView{Since: 30 * time.Minute}
	v.draw(t.Context(), h, map[string]int{"site-1": 1}, now)
	if v.More || v.Since < 29*time.Minute || v.Shown != len(h.list) || len(v.Gantt.Rows) != 1 {
		t.Fatalf("%d of %d of the last %s, cut: %v", v.Shown, len(h.list), v.Since, v.More)
	}
	row, crowd, one := v.Gantt.Rows[0], 0, 0
	for _, b := range row.Bars {
		if strings.Contains(b.Title, "same time") || b.X < ganttLeft || b.X+b.W > ganttWidth {
			t.Errorf("bar %+v", b)
		}
		if b.Class == crowded {
			crowd++
		} else {
			one++
		}
	}
	if one+row.More != len(h.list) || v.Short != row.More || crowd < 2 {
		t.Errorf("%d bars, %d in %d crowds, of %d", one, row.More, crowd, len(h.list))
	}
}
