package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cloudshare/cloudshare/node"
)

// The figures of notices of jobs' ends.
var (
	noticesSentDesc    = prometheus.NewDesc("cloudshare_notices_sent_total", "Notices of jobs' ends that their receivers have taken, since the broker's start.", nil, nil)
	noticesFailedDesc  = prometheus.NewDesc("cloudshare_notices_failed_attempts_total", "Attempts to send a notice that failed, since the broker's start.", nil, nil)
	noticesGivenUpDesc = prometheus.NewDesc("cloudshare_notices_given_up_total", "Notices that were given up, since the broker's start: their receivers did not take them in time (notify.give_up), or want none.", nil, nil)
	noticesWaitingDesc = prometheus.NewDesc("cloudshare_notices_waiting", "Notices of ended jobs that no receiver has taken yet.", nil, nil)
	noticesAgeDesc     = prometheus.NewDesc("cloudshare_notices_oldest_seconds", "For how long the oldest of them waits; 0 = none does.", nil, nil)
)

// noticeDescs are those of collectNotices.
var noticeDescs = []*prometheus.Desc{
	noticesSentDesc, noticesFailedDesc, noticesGivenUpDesc, noticesWaitingDesc, noticesAgeDesc,
}

// collectNotices gives the figures of notices.
func collectNotices(f *node.NoticeFigures, out chan<- prometheus.Metric) {
	give := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
		out <- prometheus.MustNewConstMetric(d, kind, value)
	}
	give(noticesSentDesc, prometheus.CounterValue, float64(f.Sent))
	give(noticesFailedDesc, prometheus.CounterValue, float64(f.Failed))
	give(noticesGivenUpDesc, prometheus.CounterValue, float64(f.GivenUp))
	give(noticesWaitingDesc, prometheus.GaugeValue, float64(f.Waiting))
	give(noticesAgeDesc, prometheus.GaugeValue, float64(f.OldestMs)/1000)
}
