package daemon

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/archive"
	"github.com/cloudshare/cloudshare/node/audit"
	"github.com/cloudshare/cloudshare/node/broker"
	"github.com/cloudshare/cloudshare/node/history"
)

// records are a broker's memory of what happened.
type records struct {
	archive   *archive.Archive
	recent    *archive.Recent
	collector *archive.Collector
	audit     *audit.Log
	history   *history.Keeper // nil: none is kept
}

func openRecords(cfg config.Config, federation [16]byte, b *broker.Broker, log zerolog.Logger) (*records, error) {
	kept := cfg.ForArchive(uuid.UUID(federation).String())
	kept.Logger = log
	a, err := archive.Open(kept)
	if err != nil {
		return nil, err
	}
	r := &records{archive: a, recent: archive.NewRecent(cfg.Site, time.Now())}
	if cause := r.recent.KeepCourse(filepath.Join(cfg.DataDir, "course.json"), uuid.UUID(federation).String(),
		time.Now()); cause != nil {
		log.Warn().Err(cause).Msg("saved history of the ledger unreadable; continuing without it")
	}
	if r.audit, err = audit.Open(audit.Options{
		Dir:    filepath.Join(cfg.DataDir, "audit"),
		Failed: func(cause error) { log.Error().Err(cause).Msg("audit record not written; see to the disk") },
	}); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	r.collector = archive.NewCollector(archive.Of(b), a, r.recent, log)
	return r, nil
}

func (r *records) close() error {
	r.collector.Stop()
	recorded := r.audit.Close()
	if err := r.archive.Close(); err != nil {
		return errors.Join(recorded, errors.New("the archive may lack its last second"), err)
	}
	return recorded
}

// figures returns the archive's metrics.
func (r *records) figures() []prometheus.Collector {
	return append(historyFigures(r.history), []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cloudshare_archive_bytes", Help: "Size of the archive of ended attempts on disk.",
		}, func() float64 { return float64(r.archive.Bytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cloudshare_archive_entry", Help: "Number of the last log entry that the archive has read.",
		}, func() float64 { return float64(r.archive.Place().Entry) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cloudshare_archive_damaged_files", Help: "Damaged files of the archive that are set aside; delete them once they were looked at.",
		}, func() float64 { _, files := r.archive.Damage(); return float64(files) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cloudshare_archive_lost_bytes", Help: "Bytes of the archive that could not be read when this broker started.",
		}, func() float64 { lost, _ := r.archive.Damage(); return float64(lost) }),
	}...)
}
