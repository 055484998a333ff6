package archive

import (
	"fmt"
	"math"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/notefile"
)

const (
	// courseEvery is how often the ledger's course is written, and the least time
	// between two samples that are.
	courseEvery = 5 * time.Minute
	// maxCourseBytes is what maxStandings take, and more.
	maxCourseBytes = 64 << 20
)

// course is the ledger's course in a file.
type course struct {
	Federation string
	Samples    []Sample // oldest first
}

// KeepCourse has Recent go on with the ledger's course as it was written to a
// file, and names the file for SaveCourse. After an error the course starts over.
func (r *Recent) KeepCourse(path, federation string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.course, r.federation = path, federation
	var c course
	found, err := notefile.Read(path, maxCourseBytes, &c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return fmt.Errorf("read the ledger's course from %s: %w; the chart of it starts over", path, err)
	}
	if !found || c.Federation != federation {
		return nil
	}
	for _, s := range c.Samples {
		if s.At.After(now) {
			break // the clock was set back
		}
		r.addSample(s)
	}
	r.forget(now)
	return nil
}

// SaveCourse writes the ledger's course, coarsely: a crash costs what came since
// the last time.
func (r *Recent) SaveCourse() error {
	c := r.coarse()
	if r.course == "" || len(c.Samples) == 0 {
		return nil
	}
	if err := notefile.Write(r.course, c); err != nil {
		return fmt.Errorf("write the ledger's course: %w", err)
	}
	return nil
}

// coarse copies the newest sample, and of those before what lies apart.
func (r *Recent) coarse() course {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c := course{Federation: r.federation}
	for i, s := range r.samples {
		apart := courseEvery
		if i == len(r.samples)-1 {
			apart = 1
		}
		if n := len(c.Samples); n == 0 || s.At.Sub(c.Samples[n-1].At) >= apart {
			c.Samples = append(c.Samples, s) // what it holds is never changed
		}
	}
	return c
}

// check tells whether what a file holds can be shown.
func (c *course) check() error {
	held := 0
	for i, s := range c.Samples {
		if i > 0 && !s.At.After(c.Samples[i-1].At) {
			return fmt.Errorf("sample %d is not later than the one before", i)
		}
		for j, x := range s.Sites {
			if !command.ValidSite(x.Site) || j > 0 && x.Site <= s.Sites[j-1].Site ||
				math.Abs(x.Contribution)+math.Abs(x.Utility)+math.Abs(x.Priority) > 1e60 {
				return fmt.Errorf("standing %d of sample %d is out of bounds", j, i)
			}
		}
		held += len(s.Sites)
	}
	if len(c.Samples) > maxStandings || held > maxStandings {
		return fmt.Errorf("%d samples with %d standings, at most %d are written", len(c.Samples), held, maxStandings)
	}
	return nil
}
