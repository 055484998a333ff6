package deploy

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// use is a metric in an expression, and the labels asked of it; their values are
// empty where the expression has a pattern.
type use struct {
	metric string
	labels map[string]string
}

var (
	// Words in these parentheses are labels.
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	words    = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*`)
	selector = regexp.MustCompile(`([A-Za-z_:][A-Za-z0-9_:]*)\s*(\{[^}]*\})?\s*(\()?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	offsets  = regexp.MustCompile(`\boffset\s+\w+`)
	keywords = []string{"and", "or", "unless", "bool", "offset"}
)

// used finds the metrics of a PromQL expression: words that are neither functions,
// which a parenthesis follows, nor keywords. Labels that results are grouped by are
// asked of each of them.
func used(expr string) (out []use) {
	plain := offsets.ReplaceAllString(ranges.ReplaceAllString(expr, ""), "")
	grouped := map[string]string{}
	plain = grouping.ReplaceAllStringFunc(plain, func(s string) string {
		for _, label := range words.FindAllString(grouping.FindStringSubmatch(s)[1], -1) {
			if label != "le" {
				grouped[label] = ""
			}
		}
		return " "
	})
	for _, m := range selector.FindAllStringSubmatch(plain, -1) {
		if m[3] != "" || slices.Contains(keywords, m[1]) || slices.Contains(aggregations, m[1]) {
			continue
		}
		u := use{metric: m[1], labels: maps.Clone(grouped)}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			u.labels[l[1]] = ""
			if l[2] == "=" || l[2] == "!=" {
				u.labels[l[1]] = l[3]
			}
		}
		out = append(out, u)
	}
	return out
}

// aggregations may have their grouping between their name and their parenthesis.
var aggregations = []string{"sum", "min", "max", "avg", "count"}

// TestUsed: what the other tests rest on.
func TestUsed(t *testing.T) {
	for expr, want := range map[string][]use{
		`up{job="x"} == 0`: {{"up", map[string]string{"job": "x"}}},
		`sum by (a, le) (rate(m_total{b=~"5..|4..",c!="d"}[5m])) / (n > 0)`: {
			{"m_total", map[string]string{"a": "", "b": "", "c": "d"}}, {"n", map[string]string{"a": ""}},
		},
		`max(x - x offset 30m) > 0 and on () y`: {{"x", nil}, {"x", nil}, {"y", nil}},
	} {
		got := used(expr)
		if !slices.EqualFunc(got, want, func(a, b use) bool {
			return a.metric == b.metric &&
				maps.Equal(a.labels, b.labels)
		}) {
			t.Errorf("%s uses %v, want %v", expr, got, want)
		}
	}
}
