package deploy

import (
	"encoding/json"
	"strings"
	"testing"
)

// board is as much of a Grafana dashboard as is looked at.
type board struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
			Datasource *source
		}
	}
	Panels []boardPanel
}

type source struct{ Type, UID string }

type boardPanel struct {
	ID          int
	Type, Title string
	Datasource  source
	GridPos     rect
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Datasource                source
		Expr, LegendFormat, RefID string
	}
}

// rect is a place on the 24 columns of a dashboard.
type rect struct{ X, Y, W, H int }

func (r rect) overlaps(o rect) bool {
	return r.X < o.X+o.W && o.X < r.X+r.W && r.Y < o.Y+o.H && o.Y < r.Y+r.H
}

// TestDashboardIsWhole checks what Grafana does not complain of when it loads a
// dashboard, but shows wrongly, or not at all.
func TestDashboardIsWhole(t *testing.T) {
	var b board
	must(t, json.Unmarshal([]byte(read(t, files, "monitoring/dashboard.json")), &b))
	if b.Title == "" || b.UID == "" || b.SchemaVersion < 36 {
		t.Errorf("title %q, uid %q, schema version %d", b.Title, b.UID, b.SchemaVersion)
	}
	chosen := source{"prometheus", "${datasource}"}
	variables := map[string]string{}
	for _, v := range b.Templating.List {
		variables[v.Name] = v.Type
		if v.Type == "query" && (v.Datasource == nil || *v.Datasource != chosen) {
			t.Errorf("variable %s asks %v, not the chosen data source", v.Name, v.Datasource)
		}
	}
	if variables["datasource"] != "datasource" || variables["site"] != "query" {
		t.Errorf("variables %v: want a datasource and a site to choose", variables)
	}
	ids := map[int]string{}
	for i := range b.Panels {
		p := &b.Panels[i]
		if other, taken := ids[p.ID]; taken || p.ID <= 0 {
			t.Errorf("%s has id %d, as %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		checkPanel(t, p, chosen)
		for k := range b.Panels[:i] {
			if o := &b.Panels[k]; o.GridPos.overlaps(p.GridPos) {
				t.Errorf("%s lies over %s", p.Title, o.Title)
			}
		}
	}
}

// checkPanel: it has a place and a unit, and each of its queries a name, a legend and
// a choice of sites.
func checkPanel(t *testing.T, p *boardPanel, chosen source) {
	t.Helper()
	if g := p.GridPos; g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
		t.Errorf("%s lies at %+v", p.Title, g)
	}
	if p.Title == "" || p.Type == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource != chosen || len(p.Targets) == 0 {
		t.Errorf("panel %d: %+v", p.ID, p)
	}
	names := map[string]bool{}
	for _, q := range p.Targets {
		if names[q.RefID] || q.RefID == "" {
			t.Errorf("%s has two queries %q", p.Title, q.RefID)
		}
		names[q.RefID] = true
		if q.Datasource != chosen || q.LegendFormat == "" && p.Type == "timeseries" || !strings.Contains(q.Expr, `site=~"$site"`) {
			t.Errorf("%s, query %s: %+v", p.Title, q.RefID, q)
		}
		for _, u := range used(q.Expr) {
			if !strings.HasPrefix(u.metric, "cloudshare_") && !strings.HasPrefix(u.metric, "go_") && !strings.HasPrefix(u.metric, "process_") {
				t.Errorf("%s: %q is no metric of a broker", p.Title, u.metric)
			}
		}
	}
}
