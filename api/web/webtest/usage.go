package webtest

import (
	"context"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/archive"
)

// Usages has used the same for every job.
type Usages struct {
	Used *archive.Usage // nil: a job of two attempts
	Err  error
}

var _ web.Usages = Usages{}

// Usage implements web.Usages.
func (u Usages) Usage(context.Context, command.JobID) (*archive.Usage, error) {
	if u.Used != nil || u.Err != nil {
		return u.Used, u.Err
	}
	return &archive.Usage{
		Attempts: 2, Tasks: 2, MemMiB: 1024, CoreMs: 7_200_000_000,
		Used: archive.Used{
			TimedCoreMs: 7_200_000_000, UserMs: 5_000_000, SystemMs: 400_000, PeakBytes: 512 << 20,
			InBytes: 1536, OutBytes: 5 << 30,
		},
		Sources: map[command.MeasureSource]uint64{command.MeasuredCgroup: 1, command.MeasuredUnknown: 1},
	}, nil
}
