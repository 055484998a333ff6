package raftlog

import (
	"context"
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord"
)

// reads answers current reads at the lead: after an entry of its own term it
// takes the commit index, confirms that it still leads, and hands the index
// out. Reads that wait together share one confirmation.
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
	if !r.l.seq.leads() {
		return answer{code: answerRetry}
	}
	index := r.l.raft.CommitIndex()
	if err := r.l.raft.VerifyLeader().Error(); err != nil {
		return answer{code: answerRetry}
	}
	return answer{code: answerOK, index: index}
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
	index, err := l.ask(ctx, frameRead, "", l.reads.answer)
	if err != nil {
		return 0, fmt.Errorf("sync: %w", err)
	}
	if err := l.waitApplied(ctx, index); err != nil {
		return 0, fmt.Errorf("sync: apply up to raft index %d: %w", index, err)
	}
	return l.machine.index.Load(), nil
}

// ask puts a question to the lead until it is answered or ctx ends.
func (l *Log) ask(ctx context.Context, kind byte, site string, here func(context.Context) answer) (uint64, error) {
	for try := 0; ; try++ {
		changed := l.leadChange.wait()
		a := answer{code: answerRetry}
		addr, self := l.lead()
		var err error
		switch {
		case self:
			a = here(ctx)
		case addr != "":
			a, err = l.forward.question(ctx, addr, kind, site)
		}
		switch {
		case err == nil && a.code == answerOK:
			return a.index, nil
		case err == nil && a.code == answerRefused:
			return 0, fmt.Errorf("%w: %s", coord.ErrRefused, a.text)
		}
		if err := l.pause(ctx, try, changed); err != nil {
			return 0, err
		}
	}
}
