package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// figure is one measured number beside its limit.
type figure struct {
	name     string
	measured float64
	limit    float64 // what the bare mechanism did in the same run; 0 = none
	unit     string
	aim      aim
	peers    string // what others do, measured in other runs on such a machine
	note     string
}

// aim is what a figure should reach; the zero value asks for nothing.
type aim struct {
	atLeast  float64 // of measured
	below    float64 // of measured
	atMost   float64 // of measured
	none     bool    // measured is to be 0
	minRatio float64 // of measured / limit
	maxRatio float64
}

// verdict says whether the aim is met.
func (f figure) verdict() string {
	switch {
	case f.aim == aim{}:
		return ""
	case math.IsNaN(f.measured),
		f.aim.atLeast > 0 && f.measured < f.aim.atLeast,
		f.aim.below > 0 && f.measured >= f.aim.below,
		f.aim.atMost > 0 && f.measured > f.aim.atMost,
		f.aim.none && f.measured != 0,
		f.aim.minRatio > 0 && !(f.ratio() >= f.aim.minRatio),
		f.aim.maxRatio > 0 && !(f.ratio() <= f.aim.maxRatio):
		return "MISSED"
	}
	return "met"
}

// ratio returns NaN without a limit.
func (f figure) ratio() float64 {
	if f.limit == 0 {
		return math.NaN()
	}
	return f.measured / f.limit
}

func (a aim) String() string {
	switch {
	case a.atLeast > 0:
		return "≥ " + number(a.atLeast)
	case a.below > 0:
		return "< " + number(a.below)
	case a.atMost > 0:
		return "≤ " + number(a.atMost)
	case a.none:
		return "0"
	case a.minRatio > 0:
		return fmt.Sprintf("≥ %.2f of limit", a.minRatio)
	case a.maxRatio > 0:
		return fmt.Sprintf("≤ %.1f × limit", a.maxRatio)
	}
	return ""
}

// table collects figures and sheets.
type table struct {
	machine string
	figures []figure
	sheets  []sheet
}

// sheet is a small table of one kind of number.
type sheet struct {
	title string
	head  []string
	rows  [][]string
}

func newTable(machine string) *table { return &table{machine: machine} }

func (t *table) add(f figure)     { t.figures = append(t.figures, f) }
func (t *table) addSheet(s sheet) { t.sheets = append(t.sheets, s) }

// write prints everything; a reader that went away is no fault of the figures.
func (t *table) write(w io.Writer) {
	fmt.Fprintln(w, t.machine)
	rows := sheet{head: []string{"figure", "measured", "limit, same run", "ratio", "aim", "", "peers, other runs", "note"}}
	for _, f := range t.figures {
		rows.rows = append(rows.rows, []string{
			f.name, number(f.measured) + " " + f.unit, limitText(f.limit), ratioText(f.ratio()),
			f.aim.String(), f.verdict(), f.peers, f.note,
		})
	}
	rows.write(w)
	for _, s := range t.sheets {
		fmt.Fprintln(w)
		s.write(w)
	}
}

func (s sheet) write(w io.Writer) {
	if s.title != "" {
		fmt.Fprintln(w, s.title)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{s.head}, s.rows...) {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	_ = tw.Flush()
}

// number keeps three digits that mean something.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == math.Trunc(v) && v < 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func limitText(v float64) string {
	if v == 0 {
		return "-"
	}
	return number(v)
}

func ratioText(r float64) string {
	if math.IsNaN(r) {
		return "-"
	}
	return fmt.Sprintf("%.2f", r)
}

func describeMachine() string {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	return fmt.Sprintf("%d cores, load %s before, %s, Linux %s: compare only within one run",
		runtime.NumCPU(), load(), runtime.Version(), strings.TrimSpace(string(kernel)))
}

// load of the last minute: how busy others kept the machine, too.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
