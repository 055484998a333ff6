package replica

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/cloudshare/cloudshare/node/notefile"
)

const (
	// maxDates bounds the points that are remembered.
	maxDates = 512
	// dateSlackMs is by how much a date may be off before there is a new point.
	dateSlackMs = 1000
	// maxDateMs bounds what is read from a file, either way of zero.
	maxDateMs = 1 << 52
	// datesFile is in the data directory.
	datesFile     = "dates.json"
	maxDatesBytes = 64 << 10
)

// dates turn log time into dates for people. Log time stands still while no leader
// is there, so each outage needs a point of its own: else it would move all dates
// of before. Nothing is decided by them.
type dates struct {
	points  []datePoint // Invariant: LogMs grows; at most maxDates.
	changes uint64
}

// datePoint says that from a log time on, dates are ahead of it by an offset.
type datePoint struct{ LogMs, OffsetMs int64 }

// observe notes that a log time was reached at a date. What is known already
// stays as it is, so a replay changes nothing.
func (d *dates) observe(logMs int64, at time.Time) {
	offset := at.UnixMilli() - logMs
	if n := len(d.points); n > 0 {
		last := d.points[n-1]
		if by := offset - last.OffsetMs; logMs <= last.LogMs || -dateSlackMs <= by && by <= dateSlackMs {
			return
		}
	}
	d.points = append(d.points, datePoint{logMs, offset})
	d.changes++
	if len(d.points) > maxDates {
		d.thin()
	}
}

// thin drops the point whose absence moves dates least, never the last one.
func (d *dates) thin() {
	drop, least := 1, int64(-1)
	for i := 1; i < len(d.points)-1; i++ {
		by := d.points[i].OffsetMs - d.points[i-1].OffsetMs
		if by = max(by, -by); least < 0 || by < least {
			drop, least = i, by
		}
	}
	d.points = append(d.points[:drop], d.points[drop+1:]...)
}

// date returns a log time's, the zero time if none is known.
func (d *dates) date(ms int64) time.Time {
	if len(d.points) == 0 {
		return time.Time{}
	}
	i := sort.Search(len(d.points), func(i int) bool { return d.points[i].LogMs > ms })
	return time.UnixMilli(ms + d.points[max(0, i-1)].OffsetMs)
}

// cut forgets what is later than the log: its data may have been set back.
func (d *dates) cut(logMs int64) {
	for n := len(d.points); n > 0 && d.points[n-1].LogMs > logMs; n-- {
		d.points = d.points[:n-1]
		d.changes++
	}
}

// check tells whether points from a file can be used.
func (d *dates) check() error {
	if len(d.points) > maxDates {
		return fmt.Errorf("%d points, at most %d are written", len(d.points), maxDates)
	}
	for i, p := range d.points {
		if p.LogMs < 0 || p.LogMs > maxDateMs || p.OffsetMs < -maxDateMs || p.OffsetMs > maxDateMs || i > 0 &&
			p.LogMs <= d.points[i-1].LogMs {
			return fmt.Errorf("point %d is %+v", i, p)
		}
	}
	return nil
}

// KeepDates has the replica remember in a data directory when log time was what,
// over restarts and over snapshots that leave out the entries that tell. It is
// called before the log is opened; after an error dates of the past may be off,
// all else works.
func (r *Replica) KeepDates(dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.datesPath = filepath.Join(dir, datesFile)
	read := dates{}
	found, err := notefile.Read(r.datesPath, maxDatesBytes, &read.points)
	if err == nil {
		err = read.check()
	}
	if err != nil {
		return fmt.Errorf("read dates of log time from %s: %w; dates of before the last start may be off by the outages since", r.datesPath, err)
	}
	if found {
		r.dates = read
	}
	return nil
}

// SaveDates writes the points of log time unless they are as they were written last,
// which it counts in saved.
func (r *Replica) SaveDates(saved *uint64) error {
	r.mu.RLock()
	changes, path := r.dates.changes, r.datesPath
	points := slices.Clone(r.dates.points)
	r.mu.RUnlock()
	if path == "" || changes == *saved {
		return nil
	}
	if err := notefile.Write(path, points); err != nil {
		return fmt.Errorf("write dates of log time: %w", err)
	}
	*saved = changes
	return nil
}

// CutDates forgets the points that are later than the state: its data may have been
// set back. It is called once the state is current.
func (r *Replica) CutDates() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dates.cut(r.state.Time())
}
