package api

import (
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
)

// usage answers what a job has used.
func (p *reports) usage(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	q, done, err := p.archiveQuery(r)
	if err != nil {
		return err
	}
	defer done()
	if q.Visible != nil && !q.Visible(id) {
		return node.ErrNotFound
	}
	q.Job = id
	ctx, cancel := p.stop.Until(r.Context())
	defer cancel()
	u, err := p.archive.Usage(ctx, q)
	if err != nil {
		return archiveProblem(err)
	}
	return rest.WriteJSON(w, http.StatusOK, usageOf(id, u))
}

func usageOf(id command.JobID, u *archive.Usage) wire.JobUsage {
	const hour = 3600 * 1000 // ms
	out := wire.JobUsage{
		ID: id.String(), Name: u.Name, Attempts: u.Attempts, Tasks: u.Tasks,
		First: form.Moment(u.First), Last: form.Moment(u.Last), CoreHours: coreHours(u.CoreMs),
		CPUHours: float64(u.UserMs+u.SystemMs) / hour, UserHours: float64(u.UserMs) / hour,
		MemoryMiB: u.MemMiB, MeasuredBy: make(map[string]uint64, len(u.Sources)), Gaps: gapsOf(u.Gaps),
	}
	if u.TimedCoreMs > 0 {
		share := out.CPUHours / coreHours(u.TimedCoreMs)
		out.Efficiency = &share
	}
	if u.PeakBytes > 0 {
		out.PeakBytes, out.MeanPeakBytes = &u.PeakBytes, &u.MeanPeak
	}
	if u.PeakBytes > 0 && u.MemMiB > 0 {
		share := float64(u.PeakBytes) / float64(u.MemMiB<<20)
		out.PeakEfficiency = &share
	}
	for source, n := range u.Sources {
		out.MeasuredBy[source.String()] += n
	}
	return out
}
