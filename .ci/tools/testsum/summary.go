package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// summary counts tests and keeps the output of those under way, so that only
// what failed is shown.
type summary struct {
	out                     io.Writer
	passed, failed, skipped int
	badPackages             []string
	failedTests             []string
	failedTops, passedTops  []string                    // top-level tests, by name
	grave                   bool                        // one raced, panicked or did not end
	output                  map[string]*strings.Builder // package + " " + test
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[string]*strings.Builder{}}
}

// maxWords bounds the first words of a failed test, in bytes.
const maxWords = 400

// maxLine bounds one line of test output; longer ones end the reading.
const maxLine = 16 << 20

func (s *summary) read(r io.Reader) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			fmt.Fprintln(s.out, sc.Text()) // a tool's own words, not an event
			continue
		}
		s.take(e)
	}
	return sc.Err()
}

func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		b := s.output[key]
		if b == nil {
			b = &strings.Builder{}
			s.output[key] = b
		}
		b.WriteString(e.Output)
		s.grave = s.grave || strings.Contains(e.Output, "WARNING: DATA RACE") || strings.HasPrefix(e.Output, "panic: ")
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e, key)
		} else {
			s.endTest(e, key)
		}
		delete(s.output, key)
	}
}

func (s *summary) endTest(e event, key string) {
	switch e.Action {
	case "pass":
		s.passed++
		if !strings.Contains(e.Test, "/") {
			s.passedTops = append(s.passedTops, e.Test)
		}
	case "skip":
		s.skipped++
	case "fail":
		s.failed++
		s.failedTests = append(s.failedTests, key+s.firstWords(key))
		if !strings.Contains(e.Test, "/") {
			s.failedTops = append(s.failedTops, e.Test)
		}
		s.show(key)
	}
}

// firstWords returns those of a failed test, for the end of the summary, where they stay in
// sight: long ones may follow them, such as the logs of what it had started. A line of the
// test's own counts before what others wrote.
func (s *summary) firstWords(key string) string {
	b := s.output[key]
	if b == nil {
		return ""
	}
	first := ""
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		own := strings.Contains(line, "_test.go:")
		if first == "" || own {
			first = ": " + line[:min(len(line), maxWords)]
		}
		if own {
			break
		}
	}
	return first
}

func (s *summary) endPackage(e event, key string) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %7.1fs  %s\n", e.Elapsed, e.Package)
	case "fail":
		s.badPackages = append(s.badPackages, e.Package)
		s.showUnfinished(e.Package)
		s.show(key)
		fmt.Fprintf(s.out, "FAIL  %7.1fs  %s\n", e.Elapsed, e.Package)
	}
}

// showUnfinished prints the tests of a package that never reached an end: a
// panic or a timeout ends the process, not the test.
func (s *summary) showUnfinished(pkg string) {
	for key := range s.output {
		if strings.HasPrefix(key, pkg+" ") && key != pkg+" " {
			s.failed++
			s.grave = true
			s.failedTests = append(s.failedTests, key+" (did not end)")
			s.show(key)
			delete(s.output, key)
		}
	}
}

func (s *summary) show(key string) {
	if b := s.output[key]; b != nil {
		fmt.Fprint(s.out, b.String())
	}
}

// ok: something ran, and nothing failed.
func (s *summary) ok() bool {
	return s.clean() && s.passed > 0
}

func (s *summary) clean() bool { return s.failed == 0 && len(s.badPackages) == 0 }

// tops returns the failed top-level tests; none if a package failed without one.
func (s *summary) tops() []string {
	if len(s.failedTops) < len(s.badPackages) {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(s.failedTops)))
}

// add counts what other has counted.
func (s *summary) add(other *summary) {
	s.passed, s.failed, s.skipped = s.passed+other.passed, s.failed+other.failed, s.skipped+other.skipped
	s.badPackages = append(s.badPackages, other.badPackages...)
	s.failedTests = append(s.failedTests, other.failedTests...)
}

func (s *summary) close(took time.Duration) {
	for _, t := range s.failedTests {
		fmt.Fprintln(s.out, "failed:", t)
	}
	for _, p := range s.badPackages {
		fmt.Fprintln(s.out, "failed package:", p)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped, %d packages broken in %.1f min\n",
		s.passed, s.failed, s.skipped, len(s.badPackages), took.Minutes())
}
