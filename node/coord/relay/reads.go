package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/node/coord"
)

// reads answers current reads and renewals at the leader: after an entry of its
// own term it has the backend confirm that it still leads, and hands the index
// out. Those that wait together share one confirmation, which begins after the
// last of them came.
type reads struct {
	c       *Calls
	mu      sync.Mutex
	waiting []chan answer
	running bool
	closed  bool
	wg      sync.WaitGroup
}

// answer gives the index that the asker must have applied.
func (r *reads) answer(ctx context.Context) answer {
	ch := make(chan answer, 1)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return answer{code: answerRetry}
	}
	r.waiting = append(r.waiting, ch)
	if !r.running {
		r.running = true
		r.wg.Go(r.run)
	}
	r.mu.Unlock()
	select {
	case a := <-ch:
		return a
	case <-ctx.Done():
		return answer{code: answerRetry}
	}
}

// confirmed returns answer, if the leadership confirmed is that of a term.
func (r *reads) confirmed(ctx context.Context, term uint64) answer {
	if a := r.answer(ctx); a.code == answerOK && a.term == term {
		return a
	}
	return answer{code: answerRetry}
}

func (r *reads) run() {
	for {
		r.mu.Lock()
		waiting := r.waiting
		r.waiting = nil
		r.running = len(waiting) > 0
		r.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		a := r.confirm()
		for _, ch := range waiting {
			ch <- a
		}
	}
}

func (r *reads) confirm() answer {
	term, ok := r.c.seq.leading()
	if !ok {
		return answer{code: answerRetry}
	}
	ctx, cancel := context.WithTimeout(r.c.ctx, r.c.t.Confirm)
	defer cancel()
	index, err := r.c.cfg.Backend.Confirm(ctx, term)
	if err != nil {
		return answer{code: answerRetry}
	}
	return answer{code: answerOK, index: index, term: term}
}

// close refuses new reads and waits for the confirmation under way.
func (r *reads) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wg.Wait()
}

// Sync returns once this member has applied all that was committed anywhere
// before the call.
func (c *Calls) Sync(ctx context.Context) error {
	a, err := c.askLeader(ctx, leaderQuestion{kind: frameRead}, c.reads.answer)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := c.awaitApplied(ctx, a.index); err != nil {
		return fmt.Errorf("sync: apply up to index %d: %w", a.index, err)
	}
	return nil
}

// Remove asks the leader to take a site's node out of the group.
func (c *Calls) Remove(ctx context.Context, site string) error {
	_, err := c.askLeader(ctx, leaderQuestion{kind: frameRemove, site: site}, func(ctx context.Context) answer {
		return c.verdict(func() error { return c.cfg.Backend.Remove(ctx, site) })
	})
	return err
}

// Demote asks the leader to take this member's vote; resting says that it does not
// stand for one, and stand has it do so again if the leader refuses.
func (c *Calls) Demote(ctx context.Context, site string, resting *atomic.Bool, stand func()) error {
	if site != c.cfg.Site {
		return fmt.Errorf("demote site %.80q: %w: this is %s, and a site gives up its own vote: remove another's node instead",
			site, coord.ErrRefused, c.cfg.Site)
	}
	stood := !resting.Swap(true)
	err := c.demote(ctx)
	if err == nil {
		return nil
	}
	if stood && errors.Is(err, coord.ErrRefused) {
		stand()
	}
	return fmt.Errorf("demote site %s: %w", site, err)
}

func (c *Calls) demote(ctx context.Context) error {
	_, err := c.askLeader(ctx, leaderQuestion{kind: frameDemote}, func(ctx context.Context) answer {
		return c.verdict(func() error { return c.cfg.Backend.Demote(ctx, c.cfg.Site) })
	})
	return err
}

// verdict returns how a backend's decision travels: with the term that this member led
// before it, so that a former leader's refusal does not count.
func (c *Calls) verdict(decide func() error) answer {
	term, _ := c.seq.leading()
	err := decide()
	switch {
	case err == nil:
		return answer{code: answerOK}
	case errors.Is(err, ErrRetry):
		return answer{code: answerRetry}
	}
	return answer{code: answerRefused, term: term, text: err.Error()}
}

// askLeader puts a question to the leader until it is answered or ctx ends. An answer
// that names a term older than this member knows is a former leader's: it does
// not count.
func (c *Calls) askLeader(ctx context.Context, q leaderQuestion, here func(context.Context) answer) (answer, error) {
	for try := 0; ; try++ {
		changed := c.leadChange.Wait()
		a := answer{code: answerRetry}
		to, self := c.cfg.Backend.Lead()
		var err error
		switch {
		case self:
			a = here(ctx)
		case !to.None():
			a, err = c.forward.question(ctx, to, q)
		}
		former := a.term != 0 && a.term < c.cfg.Backend.Term()
		switch {
		case err != nil || former:
		case a.code == answerOK:
			return a, nil
		case a.code == answerRefused:
			return answer{}, fmt.Errorf("%w: %s", coord.ErrRefused, a.text)
		}
		if err := c.pause(ctx, try, changed); err != nil {
			return answer{}, err
		}
	}
}
