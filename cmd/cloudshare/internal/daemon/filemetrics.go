package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cloudshare/cloudshare/node"
)

// The figures of files that travel with tasks.
var (
	fileSpaceDesc = prometheus.NewDesc("cloudshare_files_bytes",
		"Bytes of files in the store, by space: own (inputs and results of this site's jobs), cache (inputs of others' tasks), outgoing (results of others' tasks).", []string{"space"}, nil)
	fileLimitDesc    = prometheus.NewDesc("cloudshare_files_limit_bytes", "Bytes of files that a space may have (data.own, data.cache, data.outgoing).", []string{"space"}, nil)
	filePromisedDesc = prometheus.NewDesc("cloudshare_files_promised_bytes", "Bytes that a space keeps for what is to come of tasks that run here; own may be promised more than it has left.", []string{"space"}, nil)
	fileMovedDesc    = prometheus.NewDesc("cloudshare_files_transferred_bytes_total", "Bytes of files from (in) and to (out) other sites since the broker's start.", []string{"direction"}, nil)

	deliveringDesc = prometheus.NewDesc("cloudshare_deliveries_waiting", "Tasks of this site that have run elsewhere, and whose outputs are not here yet.", nil, nil)
	deliverAgeDesc = prometheus.NewDesc("cloudshare_deliveries_oldest_seconds", "For how long the oldest of them waits; 0 = none does.", nil, nil)
	noRoomDesc     = prometheus.NewDesc("cloudshare_deliveries_no_room", "1 while outputs wait because this site's store or disk has no room for them; else 0.", nil, nil)
)

// fileDescs are those of collectFiles.
var fileDescs = []*prometheus.Desc{
	fileSpaceDesc, fileLimitDesc, filePromisedDesc, fileMovedDesc, deliveringDesc, deliverAgeDesc, noRoomDesc,
}

// collectFiles gives the figures of files.
func collectFiles(f *node.FileFigures, out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, s := range f.Spaces {
		gauge(fileSpaceDesc, float64(s.Bytes), s.Space)
		gauge(fileLimitDesc, float64(s.Max), s.Space)
		gauge(filePromisedDesc, float64(s.Promised), s.Space)
	}
	for direction, n := range map[string]int64{"in": f.InBytes, "out": f.OutBytes} {
		out <- prometheus.MustNewConstMetric(fileMovedDesc, prometheus.CounterValue, float64(n), direction)
	}
	gauge(deliveringDesc, float64(f.Delivering))
	gauge(deliverAgeDesc, float64(f.OldestMs)/1000)
	gauge(noRoomDesc, oneIf(f.NoRoom))
}
