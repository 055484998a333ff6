package web

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Source is what the pages need of the broker that they stand before.
type Source interface {
	source.State
	source.Jobs
	source.Federation
	Files
	Ready() error
	// LastLines returns the end of an attempt's output, so many lines at most,
	// from whichever site has it.
	LastLines(ctx context.Context, q node.LogQuery, lines int) ([]byte, error)
	Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error)
	// Moved numbers the newest change; AwaitMove returns nil once there is a
	// newer one, else ctx's error.
	Moved() (entry, home uint64)
	AwaitMove(ctx context.Context, entry, home uint64) error
	// Events reads what happens after a place, as far as the context's asker may see it.
	Events(ctx context.Context, from node.EventID, filter node.EventFilter) Events
}

// Events is a place in the broker's feed, see replica.Subscription.
type Events interface {
	Next(ctx context.Context) ([]node.Event, error)
	Place() node.EventID
	// Latest are the newest ones after a place, at most so many.
	Latest(after node.EventID, most int) node.Latest
}

var _ Events = (*replica.Subscription)(nil)

// History is what the broker remembers of the last hours.
type History interface {
	// Attempts returns copies of those that run or ended after since, at one
	// executor ("" = all): at most limit, those that run first, then by end, the
	// latest first.
	// Of jobs that the context's asker may not know, they do not say which.
	Attempts(ctx context.Context, since time.Time, site string, limit int) []Attempt
	// EarlierOf returns copies of a job's attempts that ended, of the tasks
	// [from, to), at most limit.
	EarlierOf(job command.JobID, from, to uint32, limit int) []Attempt
	// Samples returns the ledger as it was, oldest first.
	Samples(since time.Time) []archive.Sample
}

// Attempt is one run of a task.
type Attempt struct {
	Job     command.JobID // Job.Site is the owner; number 0: it is not told which job it is
	Task    uint32
	Attempt uint32
	Site    string // executor
	Started time.Time
	Ended   time.Time // zero = it runs
	Outcome string    // an ending's name, "" = it runs, or nobody knows
}

// Whys says why jobs wait.
type Whys interface {
	// Why returns what to say of a job in words.
	Why(ctx context.Context, id command.JobID) (Why, error)
}

// Why says why a job waits, in sentences.
type Why struct {
	Lines []string  // the most important one first
	Sites []SiteWhy // per site why it does not run it now
}

// SiteWhy is one site's reason.
type SiteWhy struct{ Site, Why string }

// asElsewhere finds the broker that answers instead of this one.
func asElsewhere(err error) (*node.ElsewhereError, bool) {
	var e *node.ElsewhereError
	ok := errors.As(err, &e)
	return e, ok
}

// isElsewhere reports whether another broker answers.
func isElsewhere(err error) bool {
	_, ok := asElsewhere(err)
	return ok
}
