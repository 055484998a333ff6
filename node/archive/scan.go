package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Query selects attempts; zero fields select all.
type Query struct {
	Since, Until time.Time // by the end: at or after, before
	Site         string    // owner or executor
	Job          command.JobID
	Labels       map[string]string
	// Visible reports whether a job's attempts may be read; nil = all.
	Visible func(command.JobID) bool
	// UserOf returns the user of a job, "" = none, or not known; nil = of no job. It selects nothing: a report by user
	// asks for it, and an export with users, since the archive itself knows none.
	UserOf func(command.JobID) string
	// Users has an export in NDJSON or CSV say whose the jobs are.
	Users bool
}

// selects reports whether an attempt passes.
func (q *Query) selects(a *Attempt) bool {
	if !q.Since.IsZero() && a.Ended.Before(q.Since) || !q.Until.IsZero() && !a.Ended.Before(q.Until) {
		return false
	}
	if q.Site != "" && q.Site != a.Owner() && q.Site != a.Site {
		return false
	}
	if q.Job.Num != 0 && q.Job != a.Job {
		return false
	}
	if q.Visible != nil && !q.Visible(a.Job) {
		return false
	}
	for k, v := range q.Labels {
		if have, ok := a.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// covers reports whether a gap may hide what the query would select.
func (q *Query) covers(g *Gap) bool {
	return (q.Until.IsZero() || g.Since.Before(q.Until)) && (q.Since.IsZero() || !g.Until.Before(q.Since))
}

// Scan calls each for the attempts that the query selects, in the order in which
// they were archived: nearly that of their ends. What each is given is its own.
// It returns the gaps in between, damaged segments among them. It reads what was
// there when it began, in constant memory.
func (a *Archive) Scan(ctx context.Context, q Query, each func(*Attempt) error) ([]Gap, error) {
	if a.cfg.Scope == Off {
		return nil, ErrOff
	}
	a.mu.Lock()
	segments := slices.Clone(a.segments)
	a.mu.Unlock()
	var gaps []Gap
	for i := range segments {
		next := time.Time{}
		if i+1 < len(segments) {
			next = segments[i+1].created
		}
		if !next.IsZero() && next.Before(q.Since) {
			continue // all of it had ended by then
		}
		damage, err := a.scanSegment(ctx, &segments[i], q, &gaps, each)
		if err != nil {
			return gaps, err
		}
		if damage != "" {
			g := Gap{Since: segments[i].created, Until: next, Reason: damage}
			if g.Until.IsZero() {
				g.Until = a.cfg.Now()
			}
			gaps = append(gaps, g)
		}
	}
	return slices.DeleteFunc(gaps, func(g Gap) bool { return !q.covers(&g) }), nil
}

func (a *Archive) scanSegment(ctx context.Context, s *segment, q Query, gaps *[]Gap,
	each func(*Attempt) error,
) (damage string, err error) {
	f, err := os.Open(a.path(s.number))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // retention came first
	}
	if err != nil {
		return "", fmt.Errorf("read archive: %w", err)
	}
	defer f.Close()
	var stopped error
	var damaged []stretch
	head := int64(0)
	fault := walkFrames(f, s.size, func(record []byte, at stretch) error {
		if stopped = context.Cause(ctx); stopped != nil {
			return stopped
		}
		if record[0] == kindHead && head == 0 {
			head = at.to - at.from
		}
		err := scanRecord(record, &q, gaps, each)
		if !errors.Is(err, errBadRecord) {
			stopped = err
		}
		return err
	}, func(d stretch) { damaged = append(damaged, d) })
	if stopped != nil {
		return "", stopped
	}
	if lost := lostBytes(damaged, head); lost > 0 {
		damage = fmt.Sprintf("segment %d of the archive is damaged: %d bytes of it are left out", s.number, lost)
	}
	if fault != nil {
		damage = fmt.Sprintf("segment %d of the archive cannot be read, the rest of it is left out: %v", s.number, fault)
	}
	return damage, nil
}

func scanRecord(record []byte, q *Query, gaps *[]Gap, each func(*Attempt) error) error {
	switch record[0] {
	case kindGap:
		g, err := readGap(record[1:])
		if err == nil {
			*gaps = append(*gaps, g)
		}
		return err
	case kindAttempt:
		t := new(Attempt)
		if err := readAttempt(record[1:], t); err != nil || !q.selects(t) {
			return err
		}
		return each(t)
	}
	return nil
}
