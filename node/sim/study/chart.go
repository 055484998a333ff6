package study

import (
	"fmt"
	"io"
	"strings"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/chart"
)

// Chart draws the shares of the scores in each scenario, ours filled and the
// paper's pale beside them.
func (p *Report) Chart(dst io.Writer, format chart.Format) error {
	const (
		bar, gap, left, top, high = 22.0, 6.0, 50.0, 40.0, 240.0
	)
	most := p.topShare()
	scenarios := distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario })
	group := float64(len(p.Study.Policies)) * (2*bar + gap)
	width := left + float64(len(scenarios))*(group+40)
	s, err := chart.New(dst, format, int(width), int(top+high+70), "Shares of the scores")
	if err != nil {
		return err
	}
	for percent := 0; percent <= most; percent += 5 {
		y := top + high*(1-float64(percent)/float64(most))
		s.Line(left-5, y, width-20, y)
		s.Text(left-8, y+4, "end", fmt.Sprintf("%d%%", percent))
	}
	s.Text(left, 20, "start", "Share of the scores: measured (full colour) and the paper's Table 1 (pale)")
	for g, scenario := range scenarios {
		t := TallyOf(p.Rows, p.Study.Policies, sim.L1, func(r *Row) bool { return r.Scenario == scenario })
		x := left + float64(g)*(group+40)
		s.Text(x+group/2, top+high+60, "middle", fmt.Sprintf("scenario %d", scenario))
		for i, share := range t.Shares() {
			h := high * share * 100 / float64(most)
			fill := chart.Palette[i%len(chart.Palette)]
			s.Rect(x, top+high-h, bar, h, fill, fmt.Sprintf("%s: %.3f", t.Policies[i], share))
			if _, share, ok := paper(t.Policies[i], scenario); ok {
				h := high * share * 100 / float64(most)
				s.Rect(x+bar, top+high-h, bar, h, fill+"66", fmt.Sprintf("%s in the paper: %.3f", t.Policies[i], share))
			}
			s.Text(x+bar, top+high+16+float64(i%2)*16, "middle", short(t.Policies[i]))
			x += 2*bar + gap
		}
	}
	return s.End()
}

// topShare returns the top of the chart's scale, in percent.
func (p *Report) topShare() int {
	top := 0.0
	for _, s := range p.Scores() {
		top = max(top, s.Share, s.Paper)
	}
	return int(top*20+1) * 5
}

// short returns a policy's name below its bar.
func short(policy string) string {
	name, _, _ := strings.Cut(policy, "_")
	return name
}
