package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Usage sums up what the attempts of a job have used. Times on cores are milli-cores times milliseconds.
type Usage struct {
	Name            string
	Attempts, Tasks uint64    // that ran; tasks that ended with them
	First, Last     time.Time // of the runs; zero = none
	CoreMs          int64     // charged

	MemMiB int64 // that one task may use, 0 = no bound
	Used

	// Sources counts the attempts by what measured them.
	Sources map[command.MeasureSource]uint64
	Gaps    []Gap
}

// Usage sums up the attempts that the query selects.
func (a *Archive) Usage(ctx context.Context, q Query) (*Usage, error) {
	u := &Usage{Sources: map[command.MeasureSource]uint64{}}
	gaps, err := a.Scan(ctx, q, func(t *Attempt) error {
		u.add(t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sum up what was used: %w", err)
	}
	u.Gaps = gaps
	return u, nil
}

// add adds an attempt. One that did not run has used nothing.
func (u *Usage) add(t *Attempt) {
	if u.Name == "" {
		u.Name = t.Name
	}
	if t.Final {
		u.Tasks += uint64(t.Count)
	}
	if !t.Ran() {
		return
	}
	u.Attempts++
	u.span(t)
	plus(&u.CoreMs, t.CoreMs())
	u.MemMiB = max(u.MemMiB, t.Need.MemMiB)
	u.Sources[t.Measured.Source]++
	u.Used.add(t)
}

// PeakShare returns the greatest memory by what one task may use; false: one of them is not known.
func (u *Usage) PeakShare() (float64, bool) {
	if u.PeakBytes == 0 || u.MemMiB == 0 {
		return 0, false
	}
	return float64(u.PeakBytes) / float64(u.MemMiB<<20), true
}

func (u *Usage) span(t *Attempt) {
	if u.First.IsZero() || t.Started.Before(u.First) {
		u.First = t.Started
	}
	if t.Ended.After(u.Last) {
		u.Last = t.Ended
	}
}
