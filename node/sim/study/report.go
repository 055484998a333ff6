package study

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Variant is a study with another choice where the paper leaves one open.
type Variant struct {
	Name  string
	Study *Study
	Rows  []*Row
}

// Report is what a study came to.
type Report struct {
	Study *Study
	Rows  []*Row
	// Variants are other choices, compared with the study's own rows of the same
	// instances (see Open).
	Variants []Variant
	// Command is what was typed, for who wants to repeat it.
	Command string
}

// Markdown writes the report for people. The same rows give the same bytes.
func (p *Report) Markdown(dst io.Writer) error {
	w := &page{Writer: bufio.NewWriter(dst)}
	if p.Study.Setup.Unit == 0 {
		p.asTheyAre(w)
		return w.Flush()
	}
	w.line("# Fairness on real workloads: the paper's Table 1, measured with CloudShare's own code")
	w.line("")
	p.about(w)
	for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
		p.scenario(w, scenario)
		p.beyond(w, scenario)
	}
	p.parts(w)
	p.sensitivity(w)
	return w.Flush()
}

// page writes Markdown; an error stays for Flush.
type page struct{ *bufio.Writer }

func (w *page) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// row writes a table's row.
func (w *page) row(cells ...string) { w.line("| %s |", strings.Join(cells, " | ")) }

// head writes a table's first two lines; all but the first column are numbers.
func (w *page) head(cells ...string) {
	w.row(cells...)
	w.line("|---%s|", strings.Repeat("|--:", len(cells)-1))
}

// about says what was played, by which rules, and what was not.
func (p *Report) about(w *page) {
	s := p.Study
	w.line("    %s", p.Command)
	w.line("")
	w.line("Study %s (study code %d), seed %d: %d of %d instances. %d sites, periods of %d s, unit tasks of %d s, Zipf exponent %v,",
		s.Mark(), studyCode, s.Setup.Seed, len(p.Rows), s.Size(), s.Setup.Sites, s.Setup.Period, s.Setup.Unit,
		s.Setup.Exponent)
	w.line("background share %v; %s.", s.Setup.BackgroundShare, s.Rules)
	w.line("")
	p.ways(w)
	p.logs(w)
	w.line("The paper used HPC2N, DAS2 fs0, LPC EGEE and MetaCentrum; DAS2 fs0 could not be had. Its totals are of other")
	w.line("numbers of instances, so compare the shares.")
	p.evidence(w)
}

// logs says what was read.
func (p *Report) logs(w *page) {
	s := p.Study
	w.head("log", "jobs", "never ran", "malformed lines", "submitted out of order", "MaxProcs", "sha256 (uncompressed)")
	for _, l := range s.Workloads {
		w.row(l.Name, strconv.Itoa(l.Lines), strconv.Itoa(l.Dropped), strconv.Itoa(l.Malformed),
			strconv.Itoa(l.Unsorted), dash(l.MaxProcs), "`"+l.SHA256+"`")
	}
	w.line("")
	passed := 0
	for _, r := range p.Rows {
		if r.Mapping == 0 && r.Load == s.Loads[0] && r.Scenario == s.Scenarios[0] {
			passed += r.Passed
		}
	}
	w.line("%d starts of periods were drawn again because fewer users than sites submitted in them.", passed)
}

// evidence names the file with all instances, by its hash.
func (p *Report) evidence(w *page) {
	sum := sha256.New()
	if p.CSV(sum) == nil { // a hash takes everything
		w.line("")
		w.line("Every instance with its waits and φ is in `instances.csv`, which the command above writes beside this report; sha256 `%x`.", sum.Sum(nil))
	}
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// scenario writes one column of Table 1, and who beats whom.
func (p *Report) scenario(w *page, scenario sim.Scenario) {
	t := TallyOf(p.Rows, p.Study.Policies, sim.L1, func(r *Row) bool { return r.Scenario == scenario })
	w.line("")
	w.line("## Scenario %d", scenario)
	w.line("")
	w.line("%d instances. In %d of them nobody waits: they give no points and are left out of means and medians, here and below.", t.Instances, t.Unwaited)
	w.line("A point for every policy that one is strictly fairer than; behind ± twice the standard error of a share, over periods. Where v(N) is small L1/v(N) is large and moves the mean, so the median stands beside it.")
	w.line("")
	noise := t.Noise()
	w.head("policy", "score", "share", "paper's score", "paper's share", "wins : losses", "mean L1/v(N)", "median", "mean (L1 − floor)/v(N)", "median")
	for i, policy := range t.Policies {
		score, share := "–", "–"
		if s, f, ok := paper(policy, scenario); ok {
			score, share = strconv.Itoa(s), fmt.Sprintf("%.3f", f)
		}
		w.row(append([]string{policy, strconv.Itoa(t.Scores[i]), fmt.Sprintf("%.3f ± %.3f", t.Shares()[i], noise[i]), score, share},
			t.measures(i)...)...)
	}
	w.line("")
	w.line("Head to head, instances in which the row is fairer than the column:")
	w.line("")
	w.head(append([]string{""}, t.Policies...)...)
	for i, policy := range t.Policies {
		cells := []string{policy}
		for k := range t.Policies {
			if i == k {
				cells = append(cells, "")
				continue
			}
			cells = append(cells, strconv.Itoa(t.Beats[i][k]))
		}
		w.row(cells...)
	}
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// list writes numbers over a denominator, apart by spaces.
func list(values []int64, scale int64) string {
	var parts []string
	for _, v := range values {
		if v%scale == 0 {
			parts = append(parts, strconv.FormatInt(v/scale, 10))
		} else {
			parts = append(parts, strconv.FormatFloat(float64(v)/float64(scale), 'f', 3, 64))
		}
	}
	return strings.Join(parts, " ")
}
