package archive

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// courseOf notes the ledger once a minute for some minutes, and keeps it.
func courseOf(t *testing.T, path string, minutes int) *Recent {
	t.Helper()
	r := NewRecent("a", epoch)
	if err := r.KeepCourse(path, "fed", epoch); err != nil {
		t.Fatal(err)
	}
	for i := range minutes {
		n := strconv.Itoa(i)
		r.sample(epoch.Add(time.Duration(i)*time.Minute),
			fsm.LedgerView{Index: uint64(i), Unit: "u", Sites: []fsm.AccountView{
				{Site: "a", Contribution: n, Utility: "0.5", Priority: n}, {Site: "b", Contribution: "0", Utility: "0", Priority: "-" + n},
			}})
	}
	if err := r.SaveCourse(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCourseOutlivesARestart: after a restart the chart shows the last hours,
// coarsely, and goes on.
func TestCourseOutlivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "course.json")
	courseOf(t, path, 63)
	now := epoch.Add(70 * time.Minute)
	r := NewRecent("a", now)
	if err := r.KeepCourse(path, "fed", now); err != nil {
		t.Fatal(err)
	}
	r.sample(now, fsm.LedgerView{Index: 99})
	got := r.Samples(epoch)
	if len(got) != 15 { // 0, 5 … 60, the newest, and the one after the restart
		t.Fatalf("%d samples: %v", len(got), got)
	}
	if s := got[13]; !s.At.Equal(epoch.Add(62*time.Minute)) || s.Index != 62 || s.Unit != "u" ||
		s.Sites[0] != (Standing{"a", 62, 0.5, 62}) || s.Sites[1].Priority != -62 {
		t.Errorf("the last one of before: %+v", s)
	}
	if got[1].Index != 5 || got[14].Index != 99 {
		t.Errorf("second %+v, last %+v", got[1], got[14])
	}
}

// TestCourseForgets: what is older than a day, another federation's, or of a
// clock that was set back is not shown; nor is anything written without a file.
func TestCourseForgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "course.json")
	courseOf(t, path, 61)
	for _, c := range []struct {
		federation string
		now        time.Time
		want       int
	}{
		{"fed", epoch.Add(sampledFor + 30*time.Minute), 7},
		{"other", epoch.Add(time.Hour), 0},
		{"fed", epoch.Add(11 * time.Minute), 3},
	} {
		r := NewRecent("a", c.now)
		if err := r.KeepCourse(path, c.federation, c.now); err != nil {
			t.Fatal(err)
		}
		if got := r.Samples(time.Time{}); len(got) != c.want {
			t.Errorf("%s at %s: %d samples, want %d", c.federation, c.now, len(got), c.want)
		}
	}
	r := NewRecent("a", epoch)
	r.sample(epoch, fsm.LedgerView{})
	if err := r.SaveCourse(); err != nil {
		t.Error(err)
	}
}

// TestClockSetBack: a sample before the last one does not spoil the file.
func TestClockSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "course.json")
	r := courseOf(t, path, 30)
	r.sample(epoch, fsm.LedgerView{})
	if err := r.SaveCourse(); err != nil {
		t.Fatal(err)
	}
	if err := r.KeepCourse(path, "fed", epoch.Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestBadCourses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "course.json")
	at := func(minute string) string { return `{"At":"2026-01-01T00:` + minute + `:00Z","Sites":[]}` }
	many := strings.Repeat(`{"Site":"a"},`, 2) + `{"Site":"a"}`
	for _, text := range []string{
		"", "[]", `{"Samples":[` + at("01") + `,` + at("01") + `]}`, `{"Samples":[{"Sites":[{"Site":"<b>"}]}]}`,
		`{"Samples":[{"Sites":[{"Site":"a","Utility":1e300}]}]}`, `{"Samples":[{"Sites":[` + many + `]}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewRecent("a", epoch)
		if err := r.KeepCourse(path, "", epoch.AddDate(10, 0, 0)); err == nil || len(r.Samples(time.Time{})) > 0 {
			t.Errorf("%q is taken: %v", text, err)
		}
	}
}
