package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// probes answers what machines ask about the program: whether it is well, metrics, the
// documents.
type probes struct {
	broker interface {
		source.Health
		Site() string
	}
	api     *rest.API
	metrics *metrics
	pages   *web.Pages
}

// register adds the operations.
func (p *probes) register() {
	p.probe("livez", "The process and its store make progress", p.broker.Live, http.StatusServiceUnavailable, "not-live")
	p.probe("readyz", "A leader is known and this broker has caught up", p.broker.Ready, http.StatusServiceUnavailable, "not-ready")
	p.api.Handle(huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Prometheus metrics",
		Parameters: []*huma.Param{{Name: "name[]", In: "query", Schema: &huma.Schema{Type: huma.TypeString}, Description: "only this family"}},
		Responses:  p.api.Responses(http.StatusOK, "text/plain", &huma.Schema{Type: huma.TypeString}),
	}, func(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
		p.metrics.handler.ServeHTTP(w, r)
		return nil
	})
	p.documents()
}

// probe answers 200, or a problem with the reason.
func (p *probes) probe(name, summary string, ask func() error, status int, problemName string) {
	p.api.Handle(huma.Operation{
		OperationID: name, Method: http.MethodGet, Path: "/" + name, Summary: summary,
		Responses: p.api.Responses(http.StatusOK, wire.TypeJSON, p.api.Schema(map[string]string{}), status),
	}, func(w http.ResponseWriter, _ *http.Request, _ func(string) string) error {
		if err := ask(); err != nil {
			p := problem.New(status, problemName, "The broker is "+problemName, problem.OneLine(err.Error()))
			p.RetryAfter = 1
			return p
		}
		return rest.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok", "site": p.broker.Site()})
	})
}

// metrics counts and times requests by route; the label values are bounded.
type metrics struct {
	seconds  *prometheus.HistogramVec
	accepted prometheus.Counter
	refused  prometheus.Counter
	over     *prometheus.CounterVec
	quotas   *prometheus.CounterVec
	handler  http.Handler
}

func newMetrics(reg *prometheus.Registry) *metrics {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cloudshare_http_request_seconds", Help: "Time to answer a request, by route, method and status.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		}, []string{"route", "method", "status"}),
		accepted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cloudshare_http_jobs_accepted_total", Help: "Jobs accepted over HTTP.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cloudshare_http_jobs_refused_total", Help: "Jobs refused over HTTP, malformed ones too.",
		}),
	}
	m.over = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cloudshare_http_over_rate_total",
		Help: "What was refused because too much came, by bound: requests (wrong_tokens and anonymous of an address, user of a user) and new connections of an address.",
	}, []string{"bound"})
	for _, bound := range auth.Bounds {
		m.over.WithLabelValues(bound)
	}
	m.quotas = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cloudshare_http_jobs_over_quota_total",
		Help: "Jobs that were refused by a quota of their user, by kind: " + strings.Join(node.UserQuotas, ", ") + ".",
	}, []string{"kind"})
	for _, kind := range node.UserQuotas {
		m.quotas.WithLabelValues(kind)
	}
	reg.MustRegister(m.seconds, m.accepted, m.refused, m.over, m.quotas)
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return m
}

// overRate counts a request that was refused by a bound.
func (m *metrics) overRate(bound string) { m.over.WithLabelValues(bound).Inc() }

// overQuota counts a job that was refused by a quota of its user.
func (m *metrics) overQuota(kind string) { m.quotas.WithLabelValues(kind).Inc() }

// sessions shows how many browsers are logged in.
func (m *metrics) sessions(reg *prometheus.Registry, count func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cloudshare_http_sessions", Help: "Sessions of browsers that are logged in.",
	}, func() float64 { return float64(count()) }))
}

// observe notes one answered request. Go's server refuses methods that are no
// token, but any token may come: unknown ones share a label.
func (m *metrics) observe(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead:
	default:
		method = "other"
	}
	m.seconds.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}
