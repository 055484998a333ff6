package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts and times requests by route; the label values are bounded.
type metrics struct {
	seconds  *prometheus.HistogramVec
	accepted prometheus.Counter
	refused  prometheus.Counter
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
	reg.MustRegister(m.seconds, m.accepted, m.refused)
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return m
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
