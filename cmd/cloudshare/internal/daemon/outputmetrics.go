package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/broker/homelogs"
)

// outputsCollector gives what is kept of the output of ended attempts to /metrics.
type outputsCollector struct {
	stats func() executor.OutputStats
	home  func() homelogs.Stats
	now   func() time.Time
}

var _ prometheus.Collector = outputsCollector{}

var (
	outputsDesc        = prometheus.NewDesc("cloudshare_outputs_kept", "Ended attempts whose output is kept here.", nil, nil)
	outputBytesDesc    = prometheus.NewDesc("cloudshare_outputs_bytes", "Bytes of kept output, as they count against the limit.", nil, nil)
	outputLimitDesc    = prometheus.NewDesc("cloudshare_outputs_limit_bytes", "Bytes of output that are kept at most (task_logs.max_bytes, or half of the disk).", nil, nil)
	outputAgeDesc      = prometheus.NewDesc("cloudshare_outputs_oldest_seconds", "Time since the end of the oldest attempt whose output is kept; 0 = none is kept.", nil, nil)
	outputsRemovedDesc = prometheus.NewDesc("cloudshare_outputs_removed_total", "Attempts whose output was removed since the broker's start, by why: age (task_logs.keep) or bytes (task_logs.max_bytes).", []string{"why"}, nil)
	outputsHomeDesc    = prometheus.NewDesc("cloudshare_outputs_brought_total", "Attempts of this site's own tasks at other sites whose output was brought here since the broker's start, or was not, by how: brought, missing (their site has it not) or given_up (it broke off, or put off, too often).", []string{"how"}, nil)
	outputsWaitDesc    = prometheus.NewDesc("cloudshare_outputs_waiting", "Ended attempts of this site's own tasks at other sites whose output is to be brought here yet.", nil, nil)
	outputTroubleDesc  = prometheus.NewDesc("cloudshare_outputs_trouble", "1 while the disk takes no outputs into the store; they stay in files of their own.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c outputsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		outputsDesc, outputBytesDesc, outputLimitDesc, outputAgeDesc,
		outputsRemovedDesc, outputsHomeDesc, outputsWaitDesc, outputTroubleDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c outputsCollector) Collect(out chan<- prometheus.Metric) {
	s, home := c.stats(), c.home()
	age := 0.0
	if !s.Oldest.IsZero() {
		age = max(c.now().Sub(s.Oldest).Seconds(), 0)
	}
	for _, f := range []struct {
		desc  *prometheus.Desc
		value float64
	}{
		{outputsDesc, float64(s.Outputs)},
		{outputBytesDesc, float64(s.Bytes)},
		{outputLimitDesc, float64(s.MaxBytes)},
		{outputAgeDesc, age},
		{outputsWaitDesc, float64(home.Waiting)},
		{outputTroubleDesc, oneIf(s.Trouble != "")},
	} {
		out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, f.value)
	}
	out <- prometheus.MustNewConstMetric(outputsRemovedDesc, prometheus.CounterValue, float64(s.RemovedByAge), "age")
	out <- prometheus.MustNewConstMetric(outputsRemovedDesc, prometheus.CounterValue, float64(s.RemovedByBytes), "bytes")
	for how, n := range map[string]uint64{"brought": home.Brought, "missing": home.Missing, "given_up": home.GivenUp} {
		out <- prometheus.MustNewConstMetric(outputsHomeDesc, prometheus.CounterValue, float64(n), how)
	}
}
