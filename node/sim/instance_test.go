package sim

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim/swf"
)

func sample(t *testing.T) *Workload {
	t.Helper()
	w, err := OpenWorkload(t.Context(), "testdata/sample.swf", func(p swf.Problem) { t.Error(p) })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWorkloadDropsAndSorts(t *testing.T) {
	line := " -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n"
	text := "1 50 5 3600 2" + line + "2 40 5 0 2" + line + "3 45.9 5 10.2 -1" + line + "4 60 5 7 0 -1 -1 0 1 -1 1 3 1 -1 1 -1 -1 -1\nx\n"
	var problems int
	w, err := ReadWorkload(strings.NewReader(text), "four", func(swf.Problem) { problems++ })
	if err != nil {
		t.Fatal(err)
	}
	if w.Lines != 4 || w.Dropped != 2 || w.Malformed != 1 || problems != 1 || w.Unsorted != 2 {
		t.Errorf("%+v", w)
	}
	want := []Job{
		{Number: 3, Submit: 0, Run: 11, Width: 2, Asked: 7200, User: 3},
		{Number: 1, Submit: 5, Run: 3600, Width: 2, Asked: 7200, User: 3},
	}
	if len(w.Jobs) != 2 || w.Jobs[0] != want[0] || w.Jobs[1] != want[1] {
		t.Errorf("jobs %+v", w.Jobs)
	}
	_, err = ReadWorkload(strings.NewReader("2 40 5 0 2"+line), "none", nil)
	if !errors.Is(err, ErrNoWork) {
		t.Errorf("a log in which nothing ran: %v", err)
	}
}

// A file cut off anywhere, in its compressed header, too, names line and remedy.
func TestCutOffLogsSayWhatToDo(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte("1 0 5 3600 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for n := 2; n < b.Len(); n++ {
		_, err := ReadWorkload(bytes.NewReader(b.Bytes()[:n]), "cut.swf.gz", nil)
		if !errors.Is(err, swf.ErrTruncated) || !strings.Contains(err.Error(), "cut.swf.gz:") || !strings.Contains(err.Error(), "fetch it again") {
			t.Errorf("%d of %d bytes: %v", n, b.Len(), err)
		}
	}
	w, err := ReadWorkload(bytes.NewReader(b.Bytes()), "whole.swf.gz", nil)
	if err != nil || w.SHA256 != "b82716f83685f231c584d66faebea40a97a669433d03896bf315098fb5d0d068" {
		t.Errorf("the whole: %+v, %v", w, err)
	}
}

// lines is a log of jobs: submission, run time and processors of each, and user.
func lines(t *testing.T, jobs ...[4]int64) *Workload {
	t.Helper()
	var b strings.Builder
	for i, j := range jobs {
		fmt.Fprintf(&b, "%d %d -1 %d %d -1 -1 -1 -1 -1 1 %d -1 -1 -1 -1 -1 -1\n", i+1, j[0], j[1], j[2], j[3])
	}
	w, err := ReadWorkload(strings.NewReader(b.String()), "lines", func(p swf.Problem) { t.Error(p) })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestInstanceRefusesWhatItCannotHold(t *testing.T) {
	huge := [4]int64{0, 4e9, 4e9, 1}
	for name, c := range map[string]struct {
		jobs       [][4]int64
		from, unit int64
		cores      int64
		want       string
	}{
		"after the end":     {[][4]int64{{0, 1, 1, 1}, {9, 1, 1, 1}}, 10, 0, 1, "lines from second 10: its jobs are submitted from second 0 to 9"},
		"far after the end": {[][4]int64{{0, 1, 1, 1}}, math.MaxInt64, 3600, 1, "begin there"},
		"before the start":  {[][4]int64{{0, 1, 1, 1}}, -5, 3600, 1, "begin there"},
		"one huge job":      {[][4]int64{huge}, 0, 0, 0, "lines: cannot be simulated: job 1 on 4000000000 processors for 4000000000 seconds"},
		"huge in units":     {[][4]int64{{0, 1, 1, 1}, huge}, 0, 3600, 0, "job 2 on 4000000000 processors"},
		"huge in sum":       {[][4]int64{{0, 1e9, 5e8, 1}, {0, 1e9, 5e8, 1}, {0, 1e9, 5e8, 1}}, 0, 0, 0, "job 3 on 500000000 processors"},
		"all too wide":      {[][4]int64{{0, 1, 4, 1}, {0, 1, 5, 1}}, 0, 0, 3, "each of 2 jobs is wider than every site it could run at, the largest has 3 cores"},
	} {
		s := DefaultSetup()
		s.Sites, s.Unit, s.Cores = 1, c.unit, c.cores
		if _, err := lines(t, c.jobs...).Instance(&s, c.from, 0); !errors.Is(err, ErrBadCase) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A log of exactly one period has one period.
func TestDrawFromALogOfOnePeriod(t *testing.T) {
	w := lines(t, [4]int64{7, 1, 1, 1}, [4]int64{7 + 86399, 1, 1, 1})
	s := DefaultSetup()
	s.Sites = 1
	if from, _, err := w.Draw(&s, 0); err != nil || from != 0 {
		t.Errorf("drawn at %d, %v", from, err)
	}
	in, err := w.Instance(&s, 0, 0)
	if err != nil || in.Jobs != 2 {
		t.Errorf("%+v, %v", in, err)
	}
	s.Period++
	if _, _, err := w.Draw(&s, 0); !errors.Is(err, ErrTooShort) {
		t.Errorf("a period of a second more: %v", err)
	}
}

func TestInstanceFollowsTheSetup(t *testing.T) {
	w := sample(t)
	s := DefaultSetup()
	in, err := w.Instance(&s, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var units int64
	for _, j := range w.Between(0, s.Period) {
		units += j.Width * ((j.Run + 3599) / 3600)
	}
	if int64(len(in.Tasks)) != units {
		t.Errorf("%d tasks of %d units", len(in.Tasks), units)
	}
	perSite := max(1, (units+60)/24/5)
	if got := in.Cores; len(got) != 5 || got[0] != got[4] || got[0] < perSite-1 || got[0] > perSite+1 {
		t.Errorf("cores %v for %d units", got, units)
	}
	if err := in.Validate(); err == nil {
		t.Error("an instance without parameters is valid")
	}
	owner := map[int64]int{}
	for i := range in.Tasks {
		owner[in.Tasks[i].Job] = in.Tasks[i].Site
	}
	again, _ := w.Instance(&s, 0, 0)
	other, _ := w.Instance(&s, 0, 1)
	same := func(a *Instance) bool {
		for i := range a.Tasks {
			if owner[a.Tasks[i].Job] != a.Tasks[i].Site {
				return false
			}
		}
		return true
	}
	if !same(again) || same(other) {
		t.Error("a mapping depends on its number only")
	}
}

func TestApportion(t *testing.T) {
	for _, c := range []struct {
		Sum  int64
		e    float64
		want []int64
	}{
		{100, 1, []int64{44, 22, 14, 11, 9}}, // quotas 43.80 21.90 14.60 10.95 8.76; remainders .95 .90 .80 .76 first
		{5, 3, []int64{1, 1, 1, 1, 1}},
		{20, 0, []int64{4, 4, 4, 4, 4}},
	} {
		got := apportion(c.Sum, zipf(5, c.e))
		var sum int64
		for _, n := range got {
			sum += n
		}
		if sum != c.Sum || !slices.Equal(got, c.want) {
			t.Errorf("%d by exponent %v: %v, want %v", c.Sum, c.e, got, c.want)
		}
	}
}
