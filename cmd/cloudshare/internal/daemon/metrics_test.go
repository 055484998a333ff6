package daemon

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/mem"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// idle is a handler of one machine with two cores; nothing else is asked of it.
type idle struct{ executor.Handler }

func (idle) Name() string { return "idle" }

func (idle) Status() string { return "idle" }

func (idle) Capacity() []executor.Machine {
	return []executor.Machine{{Name: "one", Resources: executor.Resources{MilliCPU: 2000}}}
}

// comparedLog is a log whose members have compared their states.
type comparedLog struct{ *mem.Log }

// Compared implements coord.Comparing.
func (comparedLog) Compared() coord.Comparison {
	return coord.Comparison{Entry: 7, Same: []string{"site-2"}, Differ: map[string]uint64{"site-3": 7}}
}

// scrape is /metrics of a broker that has not started, after one request.
func scrape(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	journal, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	replica := replica.NewReplica()
	log, err := mem.New(func() int64 { return 0 }).Open("site-1", replica)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cfg := config.Default()
	cfg.Site, cfg.DataDir = "site-1", dir
	stored, err := openFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	b, err := broker.New(broker.Config{
		Files: stored, Data: cfg.DataTerms(),
		Site: "site-1", Exposure: node.DefaultExposure(), Journal: journal, Replica: replica, Log: comparedLog{log},
		Handlers: []executor.Handler{idle{}},
		Genesis:  command.Genesis{Params: command.DefaultParams()}, Logger: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := openRecords(cfg, [16]byte{1}, b, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	if r.history = keepHistory(cfg, replica, "", zerolog.Nop()); r.history != nil {
		defer r.history.Close()
	}
	kept, err := attempts.OpenStore(dir, cfg.Retention(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	reg := newRegistry(b, []executor.Handler{idle{}}, kept, r)
	server := api.New(api.Config{}, b, reg, zerolog.Nop())
	var last *httptest.ResponseRecorder
	for range 2 { // the first scrape is counted in the second
		last = httptest.NewRecorder()
		server.ServeHTTP(last, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	}
	return last.Body.Bytes()
}

// TestMetricsAreListed: METRICS.md has what /metrics has, and promtool's rules
// find no fault.
func TestMetricsAreListed(t *testing.T) {
	text := scrape(t)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	goldenfile.Match(t, "../../../METRICS.md", metricsReference(string(text)))
}

const metricsIntro = `<!-- Written by "go test ./cmd/cloudshare/internal/daemon -run TestMetricsAreListed -rewrite"; the test compares it with /metrics. -->
# Metrics of a broker

` + "`GET /metrics`" + ` in Prometheus' text format. Label values are bounded: ` + "`route`" + ` is a path of the API with its parameters unnamed,
not what a client typed. Besides these there are Go's and the process's own: ` + "`go_*`, `process_*`, `promhttp_*`" + `.

| metric | type | labels | meaning |
|---|---|---|---|
`

// metricsReference reads the text format as far as it needs to.
func metricsReference(text string) string {
	var b strings.Builder
	b.WriteString(metricsIntro)
	help := ""
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind, what, _ := strings.Cut(rest, " "); {
		case name != "#" || kind != "HELP" && kind != "TYPE":
		case kind == "HELP":
			_, help, _ = strings.Cut(what, " ")
		default:
			metric, sort, _ := strings.Cut(what, " ")
			if !strings.HasPrefix(metric, "go_") && !strings.HasPrefix(metric, "process_") && !strings.HasPrefix(metric, "promhttp_") {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", metric, sort, labelsOf(metric, text), help)
			}
		}
	}
	return b.String()
}

// TestSiteMetrics: a broker that has not started is not ready and knows nobody.
func TestSiteMetrics(t *testing.T) {
	text := string(scrape(t))
	for _, line := range []string{
		"cloudshare_ready 0", `cloudshare_sites{state="alive"} 0`, `cloudshare_queue_tasks{owner="own"} 0`,
		`cloudshare_site_cores{use="all"} 0`, `cloudshare_declines_total{class="trouble",handler="idle"} 0`,
		`cloudshare_attempts_lost_total{cause="vanished",handler="idle"} 0`, `cloudshare_handler_cores{handler="idle"} 2`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("/metrics has no line %q", line)
		}
	}
}

// labelsOf are the labels of a metric's first sample; a histogram's own aside.
func labelsOf(metric, text string) string {
	sample := regexp.MustCompile(`(?m)^` + metric + `(?:_bucket)?\{(.*)\} `).FindStringSubmatch(text)
	if sample == nil {
		return ""
	}
	var out []string
	for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[1], -1) {
		if l[1] != "le" {
			out = append(out, "`"+l[1]+"`")
		}
	}
	return strings.Join(out, ", ")
}
