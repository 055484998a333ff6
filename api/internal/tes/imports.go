package tes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxImports bounds the tasks whose inputs are not here yet, userImports those of one user.
	maxImports  = 10_000
	userImports = 2_500
	// maxBringing bounds those whose inputs are being brought, userBringing those of one user: they may take hours, and
	// each holds files of the store open.
	maxBringing  = 16
	userBringing = 4
	// scanEvery is how often it is looked which jobs wait for their inputs: those of earlier runs, and what was
	// accepted although nobody was told so.
	scanEvery = time.Minute
	// closeFor is for how long what goes on is waited for when the broker stops: who reads from a file system that
	// hangs does not end.
	closeFor = 10 * time.Second
)

// errCancelled ends an import whose task was cancelled.
var errCancelled = errors.New("the task was cancelled")

// imports has the inputs of tasks brought that were made before them: in the background, in turns. What is left when it
// is closed the next run of the broker begins again, for the jobs themselves say that they wait.
type imports struct {
	// bring brings the inputs of a job, or ends it; it returns when that is done, or when ctx ends.
	bring func(ctx context.Context, id command.JobID, user string)
	// awaiting returns the jobs that wait for their inputs, and userOf whose one is.
	awaiting func(ctx context.Context) ([]command.JobID, error)
	userOf   func(ctx context.Context, id command.JobID) string
	log      zerolog.Logger

	ctx    context.Context //nolint:containedctx // ends with close
	cancel context.CancelFunc
	under  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	tasks  map[uint64]*importing
	queue  []*importing // those that have not begun, oldest first
	held   counts       // tasks, and places that are reserved for more
	going  counts       // tasks whose inputs are being brought
	// over are those that ended during a scan, which may have seen them; nil: there is none. Guarded by mu.
	over map[uint64]bool
}

// counts are numbers of tasks, by user and of all.
type counts struct {
	of  map[string]int // Invariant: none is 0
	all int            // Invariant: the sum of of
}

func (c *counts) add(user string, n int) {
	c.all += n
	if c.of[user] += n; c.of[user] == 0 {
		delete(c.of, user)
	}
}

// importing is a task whose inputs are not here.
type importing struct {
	id   command.JobID
	user string
	stop context.CancelCauseFunc // nil: it has not begun
}

func newImports(log zerolog.Logger) *imports {
	m := &imports{
		log: log, tasks: map[uint64]*importing{},
		held: counts{of: map[string]int{}}, going: counts{of: map[string]int{}},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// start looks for what earlier runs have left, now and then.
func (m *imports) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.under.Go(m.scanLoop)
	}
}

// close ends what goes on, and waits for that, closeFor at most. It may be called again, and before start.
func (m *imports) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	over := make(chan struct{})
	go func() {
		m.under.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(closeFor):
		m.log.Warn().Msgf("inputs of tasks are still being read after %s: stopping without them, the next start begins them again; "+
			"look whether a file system of tes.roots hangs", closeFor)
	}
}

func (m *imports) scanLoop() {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for m.ctx.Err() == nil {
		if err := m.scan(); err != nil && m.ctx.Err() == nil {
			m.log.Warn().Err(err).Msg("tasks that wait for their inputs are not known: looking again within a minute")
		}
		select {
		case <-tick.C:
		case <-m.ctx.Done():
		}
	}
}

// scan begins what is not known yet.
func (m *imports) scan() error {
	m.mu.Lock()
	m.over = map[uint64]bool{}
	m.mu.Unlock()
	ids, err := m.awaiting(m.ctx)
	for _, id := range ids {
		user := m.userOf(m.ctx, id)
		m.mu.Lock()
		if m.tasks[id.Num] == nil && !m.over[id.Num] {
			m.held.add(user, 1) // it was accepted: no bound holds
			m.add(id, user)
		}
		m.mu.Unlock()
	}
	m.mu.Lock()
	m.over = nil
	m.mu.Unlock()
	return err
}

// reserve takes a place for a task more of a user's; begin or free follows. The error wraps node.ErrFull.
func (m *imports) reserve(user string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return node.ErrStopping
	case m.held.of[user] >= userImports:
		return fmt.Errorf("%w: %d tasks of the same user wait for their inputs: send it again when some have begun", node.ErrFull,
			m.held.of[user])
	case m.held.all >= maxImports:
		return fmt.Errorf("%w: %d tasks wait for their inputs: send it again when some have begun", node.ErrFull, m.held.all)
	}
	m.held.add(user, 1)
	return nil
}

// free gives a place back that was reserved.
func (m *imports) free(user string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held.add(user, -1)
}

// begin has the inputs of a job brought for which a place is reserved.
func (m *imports) begin(id command.JobID, user string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks[id.Num] != nil { // a scan was faster
		m.held.add(user, -1)
		return
	}
	m.add(id, user)
}

// add takes a task that is counted. REQUIRES: m.mu held.
func (m *imports) add(id command.JobID, user string) {
	i := &importing{id: id, user: user}
	m.tasks[id.Num] = i
	m.queue = append(m.queue, i)
	m.next()
}

// next begins those whose turn it is. REQUIRES: m.mu held.
func (m *imports) next() {
	left := m.queue[:0]
	for _, i := range m.queue {
		if m.closed || m.going.all >= maxBringing || m.going.of[i.user] >= userBringing {
			left = append(left, i)
			continue
		}
		m.going.add(i.user, 1)
		ctx, stop := context.WithCancelCause(m.ctx)
		i.stop = stop
		m.under.Go(func() {
			defer m.done(i)
			m.bring(ctx, i.id, i.user)
		})
	}
	clear(m.queue[len(left):])
	m.queue = left
}

// done forgets a task that has begun.
func (m *imports) done(i *importing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i.stop(nil)
	m.going.add(i.user, -1)
	m.forget(i)
	m.next()
}

// forget counts a task no more. REQUIRES: m.mu held.
func (m *imports) forget(i *importing) {
	m.held.add(i.user, -1)
	delete(m.tasks, i.id.Num)
	if m.over != nil {
		m.over[i.id.Num] = true
	}
}

// stop ends the import of a task that was cancelled, if there is one.
func (m *imports) stop(num uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.tasks[num]
	switch {
	case i == nil:
	case i.stop != nil:
		i.stop(errCancelled)
	default:
		m.forget(i)
		for at := range m.queue {
			if m.queue[at] == i {
				m.queue = append(m.queue[:at], m.queue[at+1:]...)
				return
			}
		}
	}
}
