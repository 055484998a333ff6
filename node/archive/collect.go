package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// readyWithin is how long a Collector waits for a current state before it
	// dates events by one that is not.
	readyWithin = time.Minute
	// retryAfter a failed write.
	retryAfter = 5 * time.Second
	// gatherFor is how long a Collector lets events gather that nobody waits for: to
	// take those of every entry by themselves cost a broker as much as to apply it.
	gatherFor = 25 * time.Millisecond
	// lastAnswer is how long a stopping Collector waits to be told of jobs.
	lastAnswer = time.Second
	// fewEvents come with less than that: more are taken at once.
	fewEvents = 100
	// sampleEvery is how often the ledger is noted.
	sampleEvery = time.Minute
)

// Collector carries a broker's events to its archive and to Recent.
type Collector struct {
	source  Source
	archive *Archive
	recent  *Recent
	log     zerolog.Logger

	jobs jobBook
	open openBook
	// seq is the newest event that Recent has, resume the place after the last
	// events that the archive took.
	seq    uint64
	resume node.EventID
	// recalled: Recent has what the archive holds of before.
	recalled bool

	cancel context.CancelFunc
	done   chan struct{}
}

// NewCollector returns one that has not started.
func NewCollector(s Source, a *Archive, r *Recent, log zerolog.Logger) *Collector {
	return &Collector{
		source: s, archive: a, recent: r, log: log,
		jobs: jobBook{source: s, known: map[command.JobID]node.JobFacts{}}, open: openBook{},
	}
}

// Start begins to read; it does not wait. Stop ends it.
func (c *Collector) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		ticks := make(chan struct{})
		go func() {
			defer close(ticks)
			c.tick(ctx)
		}()
		c.run(ctx)
		<-ticks
	}()
}

// Stop ends the goroutines and waits for them: idempotent, safe before Start. It
// does not close the archive.
func (c *Collector) Stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	<-c.done
}

// run reads until ctx or the broker ends.
func (c *Collector) run(ctx context.Context) {
	c.awaitReady(ctx)
	for ctx.Err() == nil {
		err := c.read(ctx)
		if ctx.Err() != nil || errors.Is(err, node.ErrStopping) {
			return
		}
		c.log.Error().Err(err).Msg("the archive takes nothing now: free space on its disk, or see the reason")
		pause(ctx, retryAfter)
	}
}

// awaitReady waits until dates of events are right.
func (c *Collector) awaitReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for c.source.Ready() != nil && ctx.Err() == nil {
		pause(ctx, syncEvery/5)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// tick keeps the archive and the ledger's course.
func (c *Collector) tick(ctx context.Context) {
	t := time.NewTicker(syncEvery)
	defer t.Stop()
	var sampled time.Time
	noted := time.Now()
	defer c.saveCourse()
	for {
		if err := c.archive.Tick(); err != nil {
			c.log.Error().Err(err).Msg("archive")
		}
		if now := time.Now(); now.Sub(sampled) >= sampleEvery && c.source.Ready() == nil {
			sampled = now
			c.recent.sample(now, c.source.Ledger())
			if now.Sub(noted) >= courseEvery {
				noted = now
				c.saveCourse()
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Collector) saveCourse() {
	if err := c.recent.SaveCourse(); err != nil {
		c.log.Warn().Err(err).Msg("after a restart the chart of the ledger may start over")
	}
}

// read takes events from the oldest that the broker holds, until there is an
// error: what the archive has already is for Recent only.
func (c *Collector) read(ctx context.Context) error {
	sub := c.source.Subscribe(c.resume)
	begun := c.seq > 0
	for {
		events, err := sub.Next(ctx)
		c.recall(ctx, sub, err)
		if errors.Is(err, node.ErrEventsLost) {
			err = c.gap(sub.Place(), begun)
		} else if err == nil {
			begun = true
			err = c.storeBatch(ctx, events, sub.Place())
		}
		if err != nil {
			return err
		}
		if len(events) < fewEvents {
			pause(ctx, gatherFor) // what has come by then is taken also if ctx has ended
		}
	}
}

// recall gives Recent, once, what the archive has of the last hours and the first
// read says that the log will not tell again: home attempts, and what ended
// before the oldest event held.
func (c *Collector) recall(ctx context.Context, sub Reader, first error) {
	if c.recalled {
		return
	}
	c.recalled = true
	var floor uint64
	if errors.Is(first, node.ErrEventsLost) {
		floor = sub.Place().Entry
	}
	_, err := c.archive.Scan(ctx, Query{Since: time.Now().Add(-recentFor)}, func(a *Attempt) error {
		if a.Number > 0 && (a.EndedMs < 0 || a.Index <= floor) {
			c.recent.recall(*a)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrOff) && ctx.Err() == nil {
		c.log.Warn().Err(err).Msg("timeline unreadable; starting over")
	}
}

// gap notes what lies between the archive's place and the next event held.
func (c *Collector) gap(to node.EventID, begun bool) error {
	c.open.forgetLog()
	c.recent.forgetLog()
	c.resume = to
	from := c.had()
	if next := advance(from, to); next.Entry == from.Entry && next.N == from.N {
		return nil
	}
	g := Gap{From: from.Entry, To: to.Entry, Since: c.archive.Last(), Until: time.Now().UTC()}
	switch {
	case begun:
		g.Reason = "the broker fell behind, or a snapshot replaced its state"
	case from == node.EventID{}:
		g.Reason = "before the archive began"
	default:
		g.Reason = "the broker was away, and its log does not reach back"
	}
	if err := c.archive.AddGap(g); err != nil {
		return err
	}
	c.log.Warn().Uint64("from", g.From).Uint64("to", g.To).Msg("archive: entries are missing: " + g.Reason)
	return c.archive.Append(nil, advance(from, to))
}

// had returns the archive's place among this broker's events. A home number of an
// earlier start is not one of theirs: the clock may have been set back since.
func (c *Collector) had() node.EventID {
	had := c.archive.Place()
	if first, newest := c.source.HomeNumbers(); had.Home < first || had.Home > newest {
		had.Home = 0
	}
	return had
}

// isNew reports whether an event came after the place of an archive. Home
// events are told apart by their number alone: a broker that has just started
// renumbers entries while it reads its log.
func isNew(had, id node.EventID) bool {
	if id.Home > 0 {
		return id.Home > had.Home
	}
	return id.Entry > had.Entry || id.Entry == had.Entry && id.N > had.N
}

// advance returns the place after both.
func advance(had, to node.EventID) node.EventID {
	home := max(had.Home, to.Home)
	if to.Entry > had.Entry || to.Entry == had.Entry && to.N > had.N {
		had = to
	}
	had.Home = home
	return had
}

// storeBatch passes one batch on.
func (c *Collector) storeBatch(ctx context.Context, events []node.Event, place node.EventID) error {
	var kept []Attempt
	again := 0 // of kept, those of which the log tells, too
	had := c.had()
	for i := range events {
		e := &events[i]
		fresh := e.Seq > c.seq // else read again after a failed write
		a, ended := c.open.applyEvent(e, fresh)
		if fresh {
			c.seq = e.Seq
			c.recent.applyEvent(e, &a, ended)
		}
		if !ended || !isNew(had, e.ID) || !c.wanted(e, &a) {
			continue
		}
		if a.comesAgain() {
			if !c.archive.hasRoomForHome(again + 1) {
				continue
			}
			again++
		}
		kept = append(kept, a)
	}
	if ctx.Err() != nil { // the last ones before Stop
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastAnswer)
		defer cancel()
	}
	c.jobs.learn(ctx, kept)
	for i := range kept {
		c.describe(&kept[i])
	}
	if err := c.archive.Append(kept, advance(had, place)); err != nil {
		return fmt.Errorf("archive %d attempts: %w", len(kept), err)
	}
	c.resume = place
	return nil
}

// describe adds what the job says.
func (c *Collector) describe(a *Attempt) {
	facts := c.jobs.known[a.Job]
	a.Name, a.Labels, a.Submitted = facts.Name, facts.Labels, facts.SubmittedAt
	if a.Submitted.IsZero() && a.Number <= 1 {
		a.Submitted = a.Queued
	}
	if a.Home && a.EndedMs < 0 && a.Queued.IsZero() && a.Number <= 1 {
		a.Queued = a.Submitted
	}
}

// wanted reports whether an end is to be archived: it is in the scope, and no home run of
// this site whose own event was archived already. Runs of less than a millisecond have
// only that event of their own.
func (c *Collector) wanted(e *node.Event, a *Attempt) bool {
	own := a.Owner() == c.source.Site() || a.Site == c.source.Site()
	switch c.archive.Scope() {
	case Off:
		return false
	case Own:
		if !own {
			return false
		}
	case All:
	}
	if e.Kind != fsm.EventHomeRan || a.Owner() != c.source.Site() {
		return true
	}
	return a.ChargedMs > 0 && !c.archive.TakeHome(a.Job, a.Task)
}
