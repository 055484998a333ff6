package stageout

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// waiter is an attempt whose outputs are collected. Those of this site's own job stay in its work folder while its
// store has no room: to run it again would cost as much, and find no room either.
type waiter struct {
	k     *Keeper
	c     executor.Collector
	o     *Order
	own   bool
	ctx   context.Context //nolint:containedctx // of one call of Collect
	room  context.Context //nolint:containedctx // ends the waiting for room, and nothing else
	pause time.Duration
	// vain is what there was room for when they were copied in vain last; -1: they were not.
	vain int64
}

// join begins the collecting of an attempt; leave ends it.
func (k *Keeper) join(ctx context.Context, c executor.Collector, o *Order) (w *waiter, leave func()) {
	room, end := context.WithCancel(ctx)
	w = &waiter{k: k, c: c, o: o, ctx: ctx, room: room, pause: firstPause, vain: -1}
	if ref, err := node.AttemptOf(o.ID); err == nil {
		w.own = ref.Job.Site == k.cfg.Site
	}
	k.mu.Lock()
	k.waiting[o.ID] = end
	k.mu.Unlock()
	return w, func() {
		end()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.waiting, o.ID)
	}
}

// EndWait says that nobody wants the outputs of an attempt any more if they wait for room. What is copied is kept.
func (k *Keeper) EndWait(id executor.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if end := k.waiting[id]; end != nil {
		end()
	}
}

// look returns why it is no use to copy the outputs of an own task: they are more than there is room for beside those
// that are copied at the moment, of which else each would take the other's room. They are measured only if they might
// be. What was copied in vain is tried again if there is more room now, or after the longest pause.
func (w *waiter) look() (copied func(), err error) {
	if !w.own {
		return func() {}, nil
	}
	left := w.left()
	if most := w.o.Outputs.MaxBytes; w.vain < 0 && most > 0 {
		if copied = w.k.claim(most, left); copied != nil {
			return copied, nil
		}
	}
	m := &measuring{}
	if bad := w.c.Collect(w.ctx, w.o.ID, wantOf(*w.o, w.o.Result.Succeeded()), m); bad != nil {
		return func() {}, nil //nolint:nilerr // copying tells what is wrong
	}
	if w.vain < 0 || left > w.vain || w.pause == longestPause {
		if copied = w.k.claim(m.bytes, left); copied != nil {
			return copied, nil
		}
	}
	if w.vain < 0 || w.pause == longestPause {
		if copied = w.k.claimOfFailures(w.ctx, m.bytes); copied != nil {
			return copied, nil
		}
	}
	return nil, fmt.Errorf("%w: they have %d bytes, and there is room for %d", store.ErrFull, m.bytes, left)
}

// claim takes room for own outputs that are to be copied, until copied is called; nil: there is none beside others.
func (k *Keeper) claim(n, left int64) (copied func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n > left-k.copying {
		return nil
	}
	k.copying += n
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.copying -= n
	}
}

// claimOfFailures is claim of what the disk has room for once what other sites' failed tasks left has gone.
func (k *Keeper) claimOfFailures(ctx context.Context, n int64) (copied func()) {
	k.mu.Lock()
	want := n + roomForList + k.copying
	k.mu.Unlock()
	if k.cfg.Store.Left(store.Own, store.Unbounded) < want { // it is the quota, which they do not take
		return nil
	}
	for freed := int64(0); ; {
		left := max(k.cfg.Store.Left(store.Own, k.cfg.Free()), freed)
		if want <= left {
			return k.claim(n, left)
		}
		more, err := k.LetGo(ctx, want-left)
		if more == 0 || err != nil {
			return nil
		}
		freed += more
	}
}

func (w *waiter) left() int64 { return w.k.cfg.Store.Left(store.Own, w.k.cfg.Free()) }

// inVain notes that they were copied in vain.
func (w *waiter) inVain() { w.vain = w.left() }

// await waits a while for room; over: it is no use any more, and out is what comes of it.
func (w *waiter) await(err error) (out Outcome, over bool) {
	age := w.k.cfg.Now().Sub(w.o.Result.Started.Add(w.o.Result.Run))
	rest := w.k.cfg.Hold - age
	if w.k.cfg.Hold > 0 && rest <= 0 {
		return Outcome{Failed: fmt.Sprintf("its results found no room at its own site for %s (data.hold), and are lost: %v"+
			"; give data.own more room, or free the disk, and run it again", w.k.cfg.Hold, err)}, true
	}
	if w.o.Waits != nil {
		w.o.Waits(fmt.Sprintf("it has ended, and its results wait in its work folder: its own site has no room for them "+
			"(data.own, or its disk): %v; they are kept for %s more", err, rest.Round(time.Minute)))
	}
	if w.k.pause(w.room, w.pause) != nil {
		return Outcome{Ended: true}, true
	}
	w.pause = min(2*w.pause, longestPause)
	return out, false
}

// measuring sums up outputs without reading them.
type measuring struct{ bytes int64 }

var _ executor.OutputSink = (*measuring)(nil)

// File implements executor.OutputSink.
func (m *measuring) File(f executor.OutputFile, _ io.Reader) error {
	m.bytes += f.Size
	return nil
}

// Skipped implements executor.OutputSink.
func (m *measuring) Skipped(string, string) {}
