package sim

import (
	"fmt"
	"io"
	"strings"
)

// palette colours owners, and policies.
var palette = [MaxSites]string{
	"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#332288", "#ddaa33", "#bb5566", "#004488", "#999933", "#882255",
}

// Chart draws the shares of the scores in each scenario, ours filled and the
// paper's pale beside them.
func (p *Report) Chart(dst io.Writer, format Format) error {
	const (
		bar, gap, left, top, high = 22.0, 6.0, 50.0, 40.0, 240.0
	)
	most := p.topShare()
	scenarios := distinct(p.Rows, func(r *Row) Scenario { return r.Scenario })
	group := float64(len(p.Study.Policies)) * (2*bar + gap)
	width := left + float64(len(scenarios))*(group+40)
	s, err := newDrawing(dst, format, int(width), int(top+high+70), "Shares of the scores")
	if err != nil {
		return err
	}
	for percent := 0; percent <= most; percent += 5 {
		y := top + high*(1-float64(percent)/float64(most))
		s.line(left-5, y, width-20, y)
		s.text(left-8, y+4, "end", fmt.Sprintf("%d%%", percent))
	}
	s.text(left, 20, "start", "Share of the scores: measured (full colour) and the paper's Table 1 (pale)")
	for g, scenario := range scenarios {
		t := TallyOf(p.Rows, p.Study.Policies, L1, func(r *Row) bool { return r.Scenario == scenario })
		x := left + float64(g)*(group+40)
		s.text(x+group/2, top+high+60, "middle", fmt.Sprintf("scenario %d", scenario))
		for i, share := range t.Shares() {
			h := high * share * 100 / float64(most)
			fill := palette[i%len(palette)]
			s.rect(x, top+high-h, bar, h, fill, fmt.Sprintf("%s: %.3f", t.Policies[i], share))
			if _, share, ok := paper(t.Policies[i], scenario); ok {
				h := high * share * 100 / float64(most)
				s.rect(x+bar, top+high-h, bar, h, fill+"66", fmt.Sprintf("%s in the paper: %.3f", t.Policies[i], share))
			}
			s.text(x+bar, top+high+16+float64(i%2)*16, "middle", short(t.Policies[i]))
			x += 2*bar + gap
		}
	}
	return s.end()
}

// topShare is the top of the chart's scale, in percent.
func (p *Report) topShare() int {
	top := 0.0
	for _, s := range p.Scores() {
		top = max(top, s.Share, s.Paper)
	}
	return int(top*20+1) * 5
}

// short is a policy's name below its bar.
func short(policy string) string {
	name, _, _ := strings.Cut(policy, "_")
	return name
}
