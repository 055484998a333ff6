package node

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// EventID is an event's place in a broker's feed. Entry and N are the same at
// every broker; Home is 0 for what the log holds. It is written "120.2", or
// "120.2.1700000000000001".
type EventID struct {
	Entry uint64 // of the event, or the last entry with one before it
	N     uint32 // from 1 within the entry
	// Home numbers this broker's home events. It grows over restarts, too, unless
	// the clock was set back; numbers of another start of the broker are told
	// apart in either case.
	Home uint64
}

// AfterEntry returns the place after all of an entry. Home events are not left out.
func AfterEntry(index uint64) EventID { return EventID{Entry: index, N: math.MaxUint32} }

// String gives the form that ParseEventID reads.
func (id EventID) String() string {
	out := strconv.FormatUint(id.Entry, 10)
	if id.N == math.MaxUint32 && id.Home == 0 {
		return out
	}
	out += "." + strconv.FormatUint(uint64(id.N), 10)
	if id.Home > 0 {
		out += "." + strconv.FormatUint(id.Home, 10)
	}
	return out
}

// ParseEventID reads "ENTRY", "ENTRY.N" or "ENTRY.N.HOME"; the first is
// AfterEntry.
func ParseEventID(s string) (EventID, error) {
	bad := func() (EventID, error) {
		return EventID{}, fmt.Errorf("%w: event id %.60q is not ENTRY, ENTRY.N or ENTRY.N.HOME", ErrBadCursor, s)
	}
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return bad()
	}
	id := EventID{N: math.MaxUint32}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, []int{64, 32, 64}[i])
		if err != nil {
			return bad()
		}
		switch i {
		case 0:
			id.Entry = n
		case 1:
			id.N = uint32(n)
		case 2:
			id.Home = n
		}
	}
	return id, nil
}

// CompareLog orders by the log's part.
func (id EventID) CompareLog(o EventID) int {
	return cmp.Or(cmp.Compare(id.Entry, o.Entry), cmp.Compare(id.N, o.N))
}

// Event is one event of a broker's feed: what an entry did, or what happened to
// a home job of this broker's site.
type Event struct {
	fsm.Event
	ID EventID
	// At is a date for people, as replica.Replica.WallOf. Home events have no log time:
	// their Time, QueuedMs and StartedMs are −1.
	At time.Time
	// Durability is DurableSite for home events: no other broker has them, and
	// this one holds them in memory only.
	Durability string
	// Seq numbers the events of this process, from 1.
	Seq uint64
}

// EventFilter selects events; a zero field selects all.
type EventFilter struct {
	Kinds map[fsm.EventKind]bool
	Job   command.JobID
	Site  string // owner of the job, executor, or the site that the event is about
	// Labels of the job's spec. An event without a job, or whose job nobody knows
	// any more, has none.
	Labels map[string]string
	// Visible reports whether a job's events are told; nil = all are. It must not wait.
	Visible func(command.JobID) bool
}

// Latest are the newest events of a feed that a filter selects.
type Latest struct {
	Events []Event // in order
	Place  EventID // after all that was looked at: where a subscription goes on
	// Since is the oldest event looked at, its ID being zero if there was none.
	Since Event
	// Whole: nothing between the place asked for, or the oldest event that is
	// held, and Place is left out.
	Whole bool
}

// ErrEventsLost says that events between the reader's place and the next one
// held are not known here: it fell behind, asked for too old ones, or a snapshot
// replaced the state. Whoever keeps a picture must read it again.
var ErrEventsLost = errors.New("events lost")

// Selects reports whether an event passes, labels aside.
func (f *EventFilter) Selects(e *Event) bool {
	return (len(f.Kinds) == 0 || f.Kinds[e.Kind]) &&
		(f.Job == command.JobID{} || f.Job == e.Job) &&
		(f.Site == "" || f.Site == e.Site || f.Site == e.Job.Site) &&
		(len(f.Labels) == 0 || e.Job.Num > 0) &&
		(f.Visible == nil || e.Job.Num == 0 || f.Visible(e.Job))
}

// Declined is what a site said when it last handed back a task of a job.
type Declined struct {
	Site, Reason string
}

// String says it in one line.
func (d Declined) String() string { return fmt.Sprintf("%s declined it last: %s", d.Site, d.Reason) }
