package deploy

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// families is what /metrics of a running broker shows: the values of each label of
// each metric, also under the names of a histogram's parts.
type families map[string]map[string][]string

var (
	sampleLine = regexp.MustCompile(`^([a-z0-9_]+)(?:\{(.*)\})? \S+$`)
	labelPair  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// scraped asks a broker that runs, and that has answered something before.
func scraped(t *testing.T) families {
	t.Helper()
	fed, err := testbed.Start(t.Context(), testbed.Options{Binary: cloudshare, Sites: 1, Cores: 1, Dir: t.TempDir()})
	must(t, err)
	defer func() { must(t, fed.Stop()) }()
	out := families{}
	for range 2 {
		b, _, err := fed.Sites[0].Do(t.Context(), http.MethodGet, "/metrics", nil, nil)
		must(t, err)
		for line := range strings.Lines(string(b)) {
			m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			if out[m[1]] == nil {
				out[m[1]] = map[string][]string{}
			}
			for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
				out[m[1]][l[1]] = append(out[m[1]][l[1]], l[2])
			}
		}
	}
	return out
}

// family is a metric's name without a histogram's part.
func family(metric string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		metric = strings.TrimSuffix(metric, part)
	}
	return metric
}

// rules is as much of a rule file as is looked at.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// TestExpressionsNameWhatIsThere: every metric, label and label's value in an alert
// or on the dashboard is one that a running broker shows. What Prometheus itself
// adds is "up", "job", "instance" and, by its configuration, "site".
func TestExpressionsNameWhatIsThere(t *testing.T) {
	shown := scraped(t)
	seen := map[string]bool{}
	check := func(where, expr string) {
		for _, u := range used(expr) {
			seen[family(u.metric)] = true
			labels, ok := shown[u.metric]
			if !ok && u.metric != "up" {
				t.Errorf("%s: no broker shows %s", where, u.metric)
				continue
			}
			for label, value := range u.labels {
				if slices.Contains([]string{"job", "instance", "site"}, label) {
					continue
				}
				values, ok := labels[label]
				if !ok {
					t.Errorf("%s: %s has no label %s", where, u.metric, label)
				}
				if value != "" && !slices.Contains(values, value) {
					t.Errorf("%s: %s never has %s=%q", where, u.metric, label, value)
				}
			}
		}
	}
	for _, g := range parsed[rules](t, read(t, files, "monitoring/alerts.yaml")).Groups {
		for _, r := range g.Rules {
			check(r.Alert, r.Expr)
		}
	}
	for _, p := range parsed[dashboard](t, read(t, files, "monitoring/dashboard.json")).Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(shown)) {
		if strings.HasPrefix(metric, "cloudshare_") && !seen[family(metric)] {
			t.Errorf("neither an alert nor the dashboard shows %s", metric)
		}
	}
}

// TestEveryAlertIsTested, says how bad it is, and what to do.
func TestEveryAlertIsTested(t *testing.T) {
	tests := read(t, files, "monitoring/alerts_test.yaml")
	for _, g := range parsed[rules](t, read(t, files, "monitoring/alerts.yaml")).Groups {
		for _, r := range g.Rules {
			if !strings.Contains(tests, `labels: 'ALERTS{alertname="`+r.Alert+`",alertstate="firing"`) {
				t.Errorf("no test has %s fire", r.Alert)
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("%s: for %s", r.Alert, r.For)
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: severity %q, annotations %v", r.Alert, s, r.Annotations)
			}
		}
	}
}

// TestChartHasTheSameFiles: Helm reads no file outside of its chart.
func TestChartHasTheSameFiles(t *testing.T) {
	for _, name := range []string{"alerts.yaml", "dashboard.json"} {
		if read(t, files, "monitoring", name) != read(t, chart, "files", name) {
			t.Errorf("deploy/helm/cloudshare/files/%[1]s differs from deploy/monitoring/%[1]s: copy it", name)
		}
	}
}
