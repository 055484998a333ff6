package daemon

import (
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/replica"
)

// keepHistory has a replica's history kept, as the configuration says; nil: it is not. A broker does not need it: what
// is in the way of it stops none.
func keepHistory(cfg config.Config, r *replica.Replica, version string, log zerolog.Logger) *history.Keeper {
	if cfg.HistoryBytes() == 0 {
		return nil
	}
	k, err := history.Open(history.Config{
		Dir: filepath.Join(cfg.DataDir, history.Folder), MaxBytes: cfg.HistoryBytes(), MinFree: cfg.Disk().MinFree,
		Site: cfg.Site, Version: version, Logger: log,
	})
	if err != nil {
		log.Error().Err(err).Msg("no history is kept for `cloudshare audit verify`: see to the folder, and start the broker again")
		return nil
	}
	r.KeepHistory(k)
	return k
}

// historyFigures returns the history's metrics.
func historyFigures(k *history.Keeper) []prometheus.Collector {
	if k == nil {
		return nil
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cloudshare_history_bytes", Help: "Size of the log's history on disk, kept for cloudshare audit verify.",
		}, func() float64 { return float64(k.Bytes()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "cloudshare_history_gaps_total", Help: "Times that entries of the log could not be kept for cloudshare audit verify, since the broker's start.",
		}, func() float64 { return float64(k.Gaps()) }),
	}
}
