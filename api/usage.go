package api

import (
	"context"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/web"
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
	ctx, cancel := p.stop.Until(r.Context())
	defer cancel()
	u, err := p.sumUp(ctx, id, q)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, usageOf(id, u))
}

// sumUp sums up what a job has used, of those attempts that a query selects, if who asks may know of it.
func (p *reports) sumUp(ctx context.Context, id command.JobID, q archive.Query) (*archive.Usage, error) {
	if q.Visible != nil && !q.Visible(id) {
		return nil, node.ErrNotFound
	}
	q.Job = id
	u, err := p.archive.Usage(ctx, q)
	if err != nil {
		return nil, archiveProblem(err)
	}
	return u, nil
}

// hour is in ms.
const hour = 3600 * 1000

// cpuHours returns processor time in hours.
func cpuHours(u *archive.Used) float64 { return (float64(u.UserMs) + float64(u.SystemMs)) / hour }

func usageOf(id command.JobID, u *archive.Usage) wire.JobUsage {
	out := wire.JobUsage{
		ID: id.String(), Name: u.Name, Attempts: u.Attempts, Tasks: u.Tasks,
		First: form.Moment(u.First), Last: form.Moment(u.Last), CoreHours: coreHours(u.CoreMs),
		CPUHours: cpuHours(&u.Used), UserHours: float64(u.UserMs) / hour,
		MemoryMiB: u.MemMiB, InBytes: u.InBytes, OutBytes: u.OutBytes,
		MeasuredBy: make(map[string]uint64, len(u.Sources)), Gaps: gapsOf(u.Gaps),
	}
	if share, ok := u.CPUShare(); ok {
		out.Efficiency = &share
	}
	if mean := u.MeanPeak(); u.PeakBytes > 0 {
		out.PeakBytes, out.MeanPeakBytes = &u.PeakBytes, &mean
	}
	if share, ok := u.PeakShare(); ok {
		out.PeakEfficiency = &share
	}
	for source, n := range u.Sources {
		out.MeasuredBy[source.String()] += n
	}
	return out
}

// pageUsages sums up for pages what jobs have used.
type pageUsages struct{ past *reports }

var _ web.Usages = pageUsages{}

// Usage implements web.Usages: nothing of a job that the context's asker may not know.
func (p pageUsages) Usage(ctx context.Context, id command.JobID) (*archive.Usage, error) {
	done, err := p.past.enter()
	if err != nil {
		return nil, err
	}
	defer done()
	return p.past.sumUp(ctx, id, archive.Query{Visible: p.past.visible(ctx)})
}
