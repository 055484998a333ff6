package web

import (
	"strings"
	"testing"
	"time"
)

// ofMany are attempts of one site, one after another.
type ofMany struct {
	History
	list []Attempt
}

func (h ofMany) Attempts(time.Time, string, int) []Attempt { return h.list }

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
	v.draw(h, now)
	if v.More || v.Since < 29*time.Minute || v.Shown != len(h.list) || len(v.Gantt.Rows) != 1 {
		t.Fatalf("%d of %d of the last %s, cut: %v", v.Shown, len(h.list), v.Since, v.More)
	}
	row, crowd, one := v.Gantt.Rows[0], 0, 0
	for _, b := range row.Bars {
		if strings.Contains(b.Title, "same time") || b.X < ganttLeft || b.X+b.W > ganttWidth {
			t.Errorf("bar %+v", b)
		}
		if b.Class == "crowd" {
			crowd++
		} else {
			one++
		}
	}
	if one+row.More != len(h.list) || v.Short != row.More || crowd < 2 {
		t.Errorf("%d bars, %d in %d crowds, of %d", one, row.More, crowd, len(h.list))
	}
}
