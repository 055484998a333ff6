package raftlog

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
)

// reads answers current reads and renewals at the lead: after an entry of its
// own term it takes the commit index, confirms that it still leads, and hands
// the index out. Those that wait together share one confirmation, which begins
// after the last of them came.
type reads struct {
	l       *Log
	mu      sync.Mutex
	waiting []chan answer
	running bool
	closed  bool
	wg      sync.WaitGroup
}

// answer gives the raft index that the asker must have applied.
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

// confirmed is answer, if the leadership confirmed is that of a term.
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

// confirm waits as long as raft lets a lead go on without a quorum.
func (r *reads) confirm() answer {
	term, ok := r.l.seq.leading()
	if !ok {
		return answer{code: answerRetry}
	}
	index := r.l.raft.CommitIndex()
	ctx, cancel := context.WithTimeout(r.l.ctx, r.l.t.lease)
	defer cancel()
	if err := r.l.trans.confirm(ctx, term, r.l.voters); err != nil {
		return answer{code: answerRetry}
	}
	return answer{code: answerOK, index: index, term: term}
}

// voters of the newest configuration.
func (l *Log) voters() (ids []raft.ServerID) {
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// close refuses new reads and waits for the confirmation under way.
func (r *reads) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wg.Wait()
}

// Sync implements coord.Log.
func (l *Log) Sync(ctx context.Context) (uint64, error) {
	a, err := l.ask(ctx, ask{kind: frameRead}, l.reads.answer)
	if err != nil {
		return 0, fmt.Errorf("sync: %w", err)
	}
	if err := l.waitApplied(ctx, a.index); err != nil {
		return 0, fmt.Errorf("sync: apply up to raft index %d: %w", a.index, err)
	}
	return l.machine.index.Load(), nil
}

// ask puts a question to the lead until it is answered or ctx ends. An answer
// that names a term older than this member knows is a former lead's: it does
// not count.
func (l *Log) ask(ctx context.Context, q ask, here func(context.Context) answer) (answer, error) {
	for try := 0; ; try++ {
		changed := l.leadChange.Wait()
		a := answer{code: answerRetry}
		addr, self := l.lead()
		var err error
		switch {
		case self:
			a = here(ctx)
		case addr != "":
			a, err = l.forward.question(ctx, addr, q)
		}
		former := a.term != 0 && a.term < l.raft.CurrentTerm()
		switch {
		case err != nil || former:
		case a.code == answerOK:
			return a, nil
		case a.code == answerRefused:
			return answer{}, fmt.Errorf("%w: %s", coord.ErrRefused, a.text)
		}
		if err := l.pause(ctx, try, changed); err != nil {
			return answer{}, err
		}
	}
}
