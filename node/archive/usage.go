package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Usage sums up what attempts have used. Times on cores are milli-cores times milliseconds.
type Usage struct {
	Name            string
	Attempts, Tasks uint64    // that ran; tasks that ended with them
	First, Last     time.Time // of the runs; zero = none
	CoreMs          int64     // charged

	// TimedCoreMs is the part of CoreMs of attempts of which the processor time is known.
	TimedCoreMs      int64
	UserMs, SystemMs int64

	MemMiB    int64 // that one task may use, 0 = no bound
	PeakBytes int64 // of the attempt that used most, 0 = not known
	// MeanPeak is the mean of the attempts' greatest memory, in bytes, as far as it is known.
	MeanPeak int64
	// peaks are those attempts, and sum their memory: it may be more than an integer holds.
	peaks, sum float64

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
	if u.Gaps = gaps; u.peaks > 0 {
		u.MeanPeak = int64(u.sum / u.peaks)
	}
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
	m := &t.Measured
	u.CoreMs += t.CoreMs()
	u.MemMiB = max(u.MemMiB, t.Need.MemMiB)
	u.Sources[m.Source]++
	if m.UserMs > 0 || m.SystemMs > 0 {
		u.TimedCoreMs += t.CoreMs()
		u.UserMs, u.SystemMs = u.UserMs+m.UserMs, u.SystemMs+m.SystemMs
	}
	if m.PeakBytes > 0 {
		u.PeakBytes = max(u.PeakBytes, m.PeakBytes)
		u.peaks++
		u.sum += float64(m.PeakBytes)
	}
}

func (u *Usage) span(t *Attempt) {
	if u.First.IsZero() || t.Started.Before(u.First) {
		u.First = t.Started
	}
	if t.Ended.After(u.Last) {
		u.Last = t.Ended
	}
}
