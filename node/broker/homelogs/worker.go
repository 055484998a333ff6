package homelogs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

const (
	// gather is how long news are collected, so that one question and one sync serve many.
	gather = time.Second
	// A site that cannot be asked is asked again after least, then after twice as long, at most after most.
	leastPause, mostPause = time.Second, time.Minute
	// dialWithin bounds how long a site's broker may take to answer.
	dialWithin = 10 * time.Second
)

// errLater reports what its site cannot give yet.
var errLater = errors.New("some outputs cannot be given yet")

// worker brings what one site has; a site that is slow or hostile holds up no other one.
type worker struct {
	*Puller
	site  string
	queue *queue
	sweep sweep
	log   zerolog.Logger
	later []want // cannot be given yet; of this burst
	// size is how many are in the next question: half as many behind an answer that broke off, so that the one is found
	// at which it does.
	size int
}

func (w *worker) run(ctx context.Context) {
	pause := leastPause
	for {
		select {
		case <-w.queue.wake:
		case <-ctx.Done():
			return
		}
		for wait := gather; wait > 0; {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			err := w.bring(ctx)
			if err == nil {
				wait, pause = 0, leastPause
				continue
			}
			w.log.Debug().Err(err).Msg("outputs of own tasks did not come home; tried again")
			wait, pause = pause, min(2*pause, mostPause)
		}
	}
}

// bring brings all that is to come now.
func (w *worker) bring(ctx context.Context) (err error) {
	if w.queue.takeSweep() {
		w.sweep.begin()
	}
	var conn *asklogs.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
		if w.retry(w.later); err == nil && len(w.later) > 0 {
			err = errLater
		}
		w.later = nil
	}()
	for ctx.Err() == nil {
		batch, more := w.next()
		if len(batch) == 0 {
			if more {
				continue
			}
			return nil
		}
		if err = w.around.Full(); err == nil && conn == nil {
			conn, err = w.open(ctx)
		}
		if err != nil {
			w.putBack(batch)
			return err
		}
		if err = w.ask(ctx, conn, batch); err != nil {
			w.failed.Add(1)
			return err
		}
	}
	return context.Cause(ctx)
}

// next returns what is asked for in one question; more is false if nothing is left.
func (w *worker) next() (batch []want, more bool) {
	since := time.Now().Add(-w.cfg.Keep)
	batch, more = w.queue.take(w.size, since), true
	if len(batch) == 0 {
		batch, more = w.sweep.next(since)
		if over := min(len(batch), w.size); over < len(batch) {
			w.putBack(batch[over:])
			batch = batch[:over]
		}
	}
	missing := batch[:0]
	for _, one := range batch {
		if !w.isKnown(one) {
			missing = append(missing, one)
		}
	}
	return missing, more
}

// isKnown reports whether an output is here, or was. Nearly all are of first attempts, of which the store knows without
// a look at the disk.
func (w *worker) isKnown(one want) bool {
	job := w.job(one)
	newest := w.cfg.Store.FindNewest(job, one.Task)
	switch {
	case errors.Is(newest.Err, executor.ErrUnreadable):
		return true // the disk refuses; a later start asks again
	case newest.Attempt > 0 && (one.Attempt == 0 || one.Attempt == newest.Attempt):
		return true
	case newest.Attempt > 0:
		if _, err := w.cfg.Store.Find(job, one.Task, one.Attempt); err == nil {
			return true
		}
	}
	_, removed := w.cfg.Store.Removed(job, one.Task, one.Attempt)
	return removed
}

func (w *worker) job(one want) string {
	return command.JobID{Site: w.around.Site, Num: one.Num}.String()
}

// open connects to the site's broker.
func (w *worker) open(ctx context.Context) (*asklogs.Conn, error) {
	addr := w.around.Source.Address(w.site)
	if addr == "" {
		return nil, errors.New("it has registered no peer address")
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := w.cfg.Dial(ctx, w.site, addr)
	if err != nil {
		w.failed.Add(1)
		return nil, fmt.Errorf("reach its broker at %s: %w", addr, err)
	}
	return asklogs.NewConn(conn), nil
}

// ask has the site answer, and puts what came into the store, also of an answer that breaks off.
func (w *worker) ask(ctx context.Context, conn *asklogs.Conn, batch []want) error {
	q := asklogs.Question{Most: w.cfg.Most, Refs: make([]asklogs.Ref, len(batch))}
	for i := range batch {
		q.Refs[i] = batch[i].Ref
	}
	w.questions.Add(1)
	t := &taking{worker: w, batch: batch}
	err := errors.Join(conn.Ask(ctx, q, t), t.finish())
	w.later = append(w.later, t.later...)
	if err == nil {
		w.size = min(2*w.size, asklogs.MaxAttempts)
		return nil
	}
	left := batch[t.kept:]
	if ctx.Err() == nil && !errors.Is(err, errStore) {
		if len(batch) == 1 && len(left) == 1 {
			left[0].tries++
		}
		w.size = max(w.size/2, 1)
	}
	w.putBack(left)
	return err
}

// retry has some wait for another try that counts.
func (w *worker) retry(list []want) {
	for i := range list {
		list[i].tries++
	}
	w.putBack(list)
}

func (w *worker) putBack(list []want) {
	if n := w.queue.putBack(list); n > 0 {
		w.givenUp.Add(uint64(n))
		w.log.Warn().Int("attempts", n).
			Msg("outputs of own tasks are not brought home: their site breaks off or puts off at each try; they can be read there")
	}
}
