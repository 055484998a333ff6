package broker

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/broker/query"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// runner is the broker's side of its handlers: it has them start, stop and forget attempts,
// moves their fences, and passes their events on.
type runner struct {
	*process
	handlers map[string]executor.Handler
	forgets  chan core.HandlerID
	progress query.StartProgress
	files    *fileMover // nil: this broker keeps no files
}

func newRunner(p *process) *runner {
	return &runner{process: p, handlers: map[string]executor.Handler{}, forgets: make(chan core.HandlerID, 4096)}
}

func (u *runner) start(st core.StartEffect) {
	h := u.handlers[st.Handler]
	if h == nil {
		u.post(core.RefusedEvent{ID: st.ID, Err: fmt.Errorf("%w: no handler %q", executor.ErrUnfit, st.Handler)})
		return
	}
	if len(st.Inputs) > 0 || st.Task.Outputs.Wanted() {
		u.startWithFiles(h, st)
		return
	}
	if err := h.Start(u.ctx, st.Task); err != nil {
		u.logTrouble(st.ID, err)
		u.post(core.RefusedEvent{ID: st.ID, Err: err})
		return
	}
	u.post(core.AcceptedEvent{ID: st.ID})
}

// startWithFiles starts a task that finds files, or leaves some.
func (u *runner) startWithFiles(h executor.Handler, st core.StartEffect) {
	_, collects := h.(executor.Collector)
	switch {
	case u.files == nil:
		u.post(core.RefusedEvent{ID: st.ID, Err: errNoFiles})
	case !collects:
		u.post(core.RefusedEvent{ID: st.ID, Err: errNoCollect})
	default:
		u.files.start(h, st)
	}
}

// logTrouble tells the operator why tasks cannot be started here, if that is not the
// tasks' fault, nor that the machine is full.
func (u *runner) logTrouble(id executor.ID, err error) {
	if trouble.ClassOf(err) == trouble.DeclinedTrouble && u.ctx.Err() == nil {
		u.log.Warn().Err(err).Stringer("attempt", id).
			Msg("a task could not be started, by this site's own trouble: it is handed back, and its machine rests for a while")
	}
}

func (u *runner) stop(st core.StopEffect) {
	h := u.handlers[st.Handler]
	if h == nil {
		return
	}
	if st.Ended {
		if u.files != nil {
			u.files.outgoing.EndWait(st.ID)
		}
		return
	}
	if st.Early && u.files != nil {
		u.files.end(st.ID)
	}
	if err := h.Stop(u.ctx, st.ID, st.Why); err != nil && u.ctx.Err() == nil {
		u.log.Warn().Err(err).Stringer("attempt", st.ID).Msg("attempt could not be stopped, will be tried again")
		u.post(core.UnstoppedEvent{ID: st.ID})
	}
}

func (u *runner) collect(e core.CollectEffect) {
	if u.files == nil {
		u.post(core.CollectedEvent{ID: e.ID, Result: e.Result, Lost: lostOutputs})
		return
	}
	u.files.collect(u.handlers[e.Handler], e)
}

// extend moves the fences of the handlers that have a watchdog.
func (u *runner) extend(until int64) {
	for name, h := range u.handlers {
		x, ok := h.(executor.Extender)
		if !ok {
			continue
		}
		if err := x.Extend(until); err != nil && u.ctx.Err() == nil {
			u.log.Warn().Err(err).Str("handler", name).Msg("fences were not moved: foreign tasks will be stopped")
		}
	}
}

// forgetLoop drops settled attempts at their handlers, aside from the loop.
func (u *runner) forgetLoop() {
	for {
		select {
		case f := <-u.forgets:
			u.forget(f)
		case <-u.ctx.Done():
			return
		}
	}
}

func (u *runner) forget(f core.HandlerID) {
	if u.files != nil {
		u.files.stager.Drop(f.ID)
		u.files.room.release(f.ID)
	}
	h := u.handlers[f.Handler]
	if h == nil {
		return
	}
	if err := h.Forget(u.ctx, f.ID); err != nil && u.ctx.Err() == nil {
		u.log.Debug().Err(err).Stringer("attempt", f.ID).Msg("attempt not forgotten")
	}
}

// listen passes a handler's events on.
func (u *runner) listen(h executor.Handler) {
	for {
		select {
		case ev, open := <-h.Events():
			if !open {
				return
			}
			u.handle(h, ev)
		case <-u.ctx.Done():
			return
		}
	}
}

func (u *runner) handle(h executor.Handler, ev executor.Event) {
	u.progress.Record(ev)
	switch {
	case ev.Ended != nil:
		if ev.Ended.Cause == executor.Declined {
			u.logTrouble(ev.ID, errors.New(ev.Ended.Detail))
		}
		u.post(core.EndedEvent{ID: ev.ID, Result: *ev.Ended})
	case ev.Started:
		u.post(core.StartedEvent{ID: ev.ID})
	case ev.Capacity:
		u.post(core.CapacityEvent{Handler: h.Name(), Machines: h.Capacity()})
	}
}
