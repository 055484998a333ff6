package swf

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// readAll reads a log and what was wrong with it.
func readAll(t *testing.T, src io.Reader, name string) (jobs []Job, problems []string, r *Reader) {
	t.Helper()
	r = NewReader(src, name, func(p Problem) { problems = append(problems, p.String()) })
	for {
		j, err := r.Next()
		if errors.Is(err, io.EOF) {
			return jobs, problems, r
		}
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
}

func TestEveryOddLineIsReported(t *testing.T) {
	f, err := os.Open("testdata/odd.swf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	jobs, problems, r := readAll(t, f, "odd.swf")
	want := []string{
		"odd.swf:7: 8 fields, want 18: skipped",
		`odd.swf:9: field 12 (user) is "x": not a number: skipped`,
		"odd.swf:10: more than 18 fields: the rest of the line was ignored",
		`odd.swf:11: field 5 (allocated processors) is "1.5": not a whole number: skipped`,
		`odd.swf:12: field 4 (run time) is "NaN": not a number: skipped`,
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}
	var numbers []int64
	for i := range jobs {
		numbers = append(numbers, jobs[i].Number)
	}
	if !slices.Equal(numbers, []int64{1, 2, 5, 8}) {
		t.Errorf("jobs %v were read", numbers)
	}
	if j := jobs[1]; j.Submit != 10.5 || j.Run != 100.25 || j.User != 4 || j.Width() != 4 {
		t.Errorf("job 2 is %+v", j)
	}
	if v, ok := r.Field("maxprocs"); !ok || v != "12" || len(r.header) != 4 {
		t.Errorf("MaxProcs is %q in header %q", v, r.header)
	}
}

func TestGzippedOrPlainIsTheSame(t *testing.T) {
	plain, err := os.ReadFile("testdata/odd.swf")
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := readAll(t, bytes.NewReader(plain), "a")
	got, _, _ := readAll(t, bytes.NewReader(compress(t, plain)), "a")
	if !slices.Equal(got, want) {
		t.Errorf("gzipped: %v, plain: %v", got, want)
	}
}

func compress(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBadFilesNameTheLineAndTheRemedy(t *testing.T) {
	line := "1 0 5 3600 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n"
	whole := compress(t, []byte(strings.Repeat(line, 1000)))
	for name, c := range map[string]struct {
		data []byte
		want error
		text string
	}{
		"cut":     {whole[:len(whole)-8], ErrTruncated, "log:1001: the compressed file is cut off or damaged: fetch it again"},
		"damaged": {append(slices.Clone(whole[:len(whole)-8]), 1, 2, 3, 4, 5, 6, 7, 8), ErrTruncated, "fetch it again"},
		"corrupt": {[]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 0x07}, ErrTruncated, "log:1: "},
		"header":  {[]byte{0x1f, 0x8b, 9}, ErrTruncated, "log:1: "},
		"empty":   {nil, ErrEmpty, "log:0: no job in the log: is it in the Standard Workload Format, plain or gzipped?"},
		"garbage": {[]byte("hello\n"), ErrEmpty, "log:1: no job"},
	} {
		r := NewReader(bytes.NewReader(c.data), "log", nil)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
}

func TestLongLinesAreSkipped(t *testing.T) {
	line := "1 0 5 3600 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n"
	text := strings.Repeat("9", 3*MaxLine) + "\n" + line + ";" + strings.Repeat("c", 2*MaxLine)
	jobs, problems, _ := readAll(t, strings.NewReader(text), "long")
	if len(jobs) != 1 || len(problems) != 2 || problems[0] != "long:1: longer than 65536 bytes: skipped" {
		t.Errorf("%d jobs, problems %q", len(jobs), problems)
	}
}

// What is written is read back, whatever it is.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := make([]Job, rapid.IntRange(1, 5).Draw(t, "jobs"))
		for i := range jobs {
			for f := range Fields {
				if whole, frac := jobs[i].field(f); whole != nil {
					*whole = rapid.Int64Range(-1, 1e12).Draw(t, "whole")
				} else {
					*frac = rapid.Float64Range(-1, 1e12).Draw(t, "real")
				}
			}
		}
		var b bytes.Buffer
		w := NewWriter(&b, "; Version: 2.2", "two\nlines")
		for i := range jobs {
			if err := w.Write(&jobs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		r := NewReader(&b, "back", func(p Problem) { t.Fatal(p) })
		for i := range jobs {
			got, err := r.Next()
			if err != nil || got != jobs[i] {
				t.Fatalf("read %+v, %v; wrote %+v", got, err, jobs[i])
			}
		}
		if want := []string{"; Version: 2.2", "; two lines"}; !slices.Equal(r.header, want) {
			t.Fatalf("header %q", r.header)
		}
	})
}

// Whatever bytes there are: every line is a job, a problem, a comment or blank, and
// what was read as a job is written and read back the same.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "; x\n1 2", "1 0 5 3600 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1", "\x1f\x8b\x08",
		"1 0 5 3600 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1 19\r\n\xef\xbb\xbf;\n", "1e14 -0 5 0x1p3 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 1_0",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := 0 // of problems, each later than the one before
		r := NewReader(bytes.NewReader(data), "fuzz", func(p Problem) {
			if p.Line <= lines || p.What == "" || p.Done == "" {
				t.Fatalf("problem %+v after line %d", p, lines)
			}
			lines = p.Line
		})
		for {
			j, err := r.Next()
			if err != nil {
				break
			}
			var b bytes.Buffer
			w := NewWriter(&b)
			if err := errors.Join(w.Write(&j), w.Flush()); err != nil {
				t.Fatal(err)
			}
			if again, err := NewReader(&b, "again", nil).Next(); err != nil || again != j {
				t.Fatalf("read %+v, written and read again %+v: %v", j, again, err)
			}
		}
		if r.Jobs()+r.Problems() > 2*r.Line() { // a line that is too long for its fields is both
			t.Fatalf("%d jobs and %d problems in %d lines", r.Jobs(), r.Problems(), r.Line())
		}
	})
}

// known are the jobs, users and malformed lines that logs of the archive, and the
// sample, are known to have.
var known = map[string][3]int{
	"HPC2N-2002-2.2-cln": {202871, 257}, "LPC-EGEE-2004-1.2-cln": {234889, 56}, "METACENTRUM-2009-2": {103656, 147},
	"HPC2N-2002-2.1-cln": {202876, 257}, "CEA-Curie-2011-2.1-cln": {312826, 582}, "KTH-SP2-1996-2": {28489, 214},
	"KTH-SP2-1996-2.1-cln": {28476, 214}, "LANL-CM5-1994-4.1-cln": {122060, 213}, "LCG-2005-1": {188041, 216},
	"LLNL-Thunder-2007-1.1-cln": {121039, 283}, "NASA-iPSC-1993-3.1-cln": {18239, 69}, "RICC-2010-2": {447794, 176},
	"SDSC-BLUE-2000-4.2-cln": {243306, 468}, "SDSC-Par-1996-3.1-cln": {32135, 60}, "Sandia-Ross-2001-1.1-cln": {57882, 203},
	"sample": {716, 12},
}

// TestArchiveLogs reads every log in SWF_DIR (make sim-real), by default the
// sample, and compares it with what it is known to have.
func TestArchiveLogs(t *testing.T) {
	dir := cmp.Or(os.Getenv("SWF_DIR"), "../testdata")
	read := 0
	for _, pattern := range []string{"*.swf", "*.swf.gz"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			readKnown(t, path)
			read++
		}
	}
	if read == 0 {
		t.Errorf("no log in %s: nothing was read", dir)
	}
}

// readKnown reads a log; one that is not known is only said.
func readKnown(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".swf")
	jobs, problems, _ := readAll(t, f, name)
	users := map[int64]bool{}
	for i := range jobs {
		users[jobs[i].User] = true
	}
	got := [3]int{len(jobs), len(users), len(problems)}
	if want, ok := known[name]; !ok {
		t.Logf("%s: jobs, users, malformed lines %v; nothing is known of it", name, got)
	} else if got != want {
		t.Errorf("%s: jobs, users, malformed lines %v, want %v; %q", name, got, want, problems[:min(3, len(problems))])
	}
}

// A small compressed file may hold any number of malformed lines: no list of them
// is to fill the disk.
func TestFarTooManyMalformedLines(t *testing.T) {
	heard := 0
	r := NewReader(strings.NewReader(strings.Repeat("x\n", MaxProblems+2)), "bomb.swf", func(Problem) { heard++ })
	if _, err := r.Next(); !errors.Is(err, ErrMalformed) || !strings.HasPrefix(err.Error(), "bomb.swf:1000001: ") ||
		heard != MaxProblems+1 {
		t.Errorf("%d lines reported, %v", heard, err)
	}
}
