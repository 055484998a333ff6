package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cloudshare/cloudshare/executor"
)

// outputsCollector gives what is kept of the output of ended attempts to /metrics.
type outputsCollector struct {
	stats func() executor.OutputStats
	now   func() time.Time
}

var _ prometheus.Collector = outputsCollector{}

var (
	outputsDesc        = prometheus.NewDesc("cloudshare_outputs_kept", "Ended attempts whose output is kept here.", nil, nil)
	outputBytesDesc    = prometheus.NewDesc("cloudshare_outputs_bytes", "Bytes of kept output, as they count against the limit.", nil, nil)
	outputLimitDesc    = prometheus.NewDesc("cloudshare_outputs_limit_bytes", "Bytes of output that are kept at most (task_logs.max_bytes, or half of the disk).", nil, nil)
	outputAgeDesc      = prometheus.NewDesc("cloudshare_outputs_oldest_seconds", "Time since the end of the oldest attempt whose output is kept; 0 = none is kept.", nil, nil)
	outputsRemovedDesc = prometheus.NewDesc("cloudshare_outputs_removed_total", "Attempts whose output was removed since the broker's start, by why: age (task_logs.keep) or bytes (task_logs.max_bytes).", []string{"why"}, nil)
	outputTroubleDesc  = prometheus.NewDesc("cloudshare_outputs_trouble", "1 while the disk takes no outputs into the store; they stay in files of their own.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c outputsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		outputsDesc, outputBytesDesc, outputLimitDesc, outputAgeDesc,
		outputsRemovedDesc, outputTroubleDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c outputsCollector) Collect(out chan<- prometheus.Metric) {
	s := c.stats()
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
		{outputTroubleDesc, oneIf(s.Trouble != "")},
	} {
		out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, f.value)
	}
	out <- prometheus.MustNewConstMetric(outputsRemovedDesc, prometheus.CounterValue, float64(s.RemovedByAge), "age")
	out <- prometheus.MustNewConstMetric(outputsRemovedDesc, prometheus.CounterValue, float64(s.RemovedByBytes), "bytes")
}
