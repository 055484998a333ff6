package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker/query"
	"github.com/cloudshare/cloudshare/node/broker/stagein"
	"github.com/cloudshare/cloudshare/node/broker/stageout"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/record"
)

// fileMover brings the files of tasks here before they start, and keeps what they leave. It is nil at a broker without
// a store of files.
type fileMover struct {
	*process
	stager   *stagein.Stager
	outgoing *stageout.Keeper
	progress *query.StartProgress
	room     *roomKeeper

	mu sync.Mutex
	// preparing are the attempts with files whose start is prepared, and what ends that.
	preparing map[executor.ID]context.CancelCauseFunc
}

// newFileMover returns the broker's, nil if it keeps no files.
func newFileMover(b *Broker) *fileMover {
	cfg := &b.cfg
	if cfg.Files == nil {
		return nil
	}
	m := &fileMover{
		process: b.process, progress: &b.runner.progress, room: newRoomKeeper(b),
		preparing: map[executor.ID]context.CancelCauseFunc{},
	}
	m.stager = stagein.New(stagein.Config{
		Site: cfg.Site, Store: cfg.Files, Transfers: b.moved, UserOf: b.UserOf, LendMax: cfg.Data.LendMax,
		Free: b.disk.Room,
		Where: func(site string) (string, uint64) {
			return cfg.Replica.PeerAddress(site), cfg.Replica.Index()
		},
	})
	m.outgoing = stageout.New(stageout.Config{
		Site: cfg.Site, Store: cfg.Files, Hold: cfg.Data.Hold, Now: time.Now, UserOf: b.UserOf, Record: m.record,
		Free: b.disk.Room, KeepResult: b.KeepResult, Current: func() error { return b.Current() },
		Wanted: func(ref command.AttemptRef) (wanted bool) {
			cfg.Replica.View(func(s *fsm.State) { wanted = s.OutputsWanted(cfg.Site, ref) })
			return wanted
		},
		Left: func(ref command.AttemptRef) (left bool) {
			cfg.Replica.View(func(s *fsm.State) { left = s.OutputsLeft(cfg.Site, ref) })
			return left
		},
		Change: func() (entry uint64) {
			cfg.Replica.View(func(s *fsm.State) { entry = s.OutputsChange(cfg.Site) })
			return entry
		},
	})
	m.room.leftovers = m.outgoing
	return m
}

// record has writes synced with those of the loop's next turn.
func (p *process) record(ctx context.Context, writes []record.Write) error {
	done := make(chan struct{})
	p.post(core.RecordEvent{Writes: writes, Done: func() { close(done) }})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

var (
	errNoFiles   = fmt.Errorf("%w: files travel with it, and this site's broker keeps none", executor.ErrUnfit)
	errNoCollect = fmt.Errorf("%w: files travel with it, and its handler takes none", executor.ErrUnfit)
)

// start starts a task with files, or brings them here first.
func (m *fileMover) start(h executor.Handler, st core.StartEffect) {
	if err := m.room.reserve(&st); err != nil {
		m.room.unroomed(st.ID, err)
		return
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	defer cancel(nil)
	m.mu.Lock()
	m.preparing[st.ID] = cancel
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.preparing, st.ID)
	}()
	order := stagein.Order{
		ID: st.ID, Index: st.Index, Inputs: st.Inputs,
		OutputBytes: st.Task.Outputs.MaxBytes, Absolute: st.Task.Image != "",
		Tell: func(what string) { m.progress.Record(executor.Event{ID: st.ID, Doing: what}) },
	}
	if st.Stage {
		m.post(core.PreparingEvent{ID: st.ID})
		m.stage(ctx, order)
		return
	}
	err := m.stager.Files(ctx, order, func(fs []executor.File, bytes int64) error {
		m.post(core.PreparingEvent{ID: st.ID, InBytes: bytes})
		st.Task.Files = fs
		return h.Start(m.ctx, st.Task)
	})
	var unstaged *stagein.Error
	switch {
	case errors.As(err, &unstaged):
		m.post(core.UnstagedEvent{ID: st.ID, Fault: unstaged.Fault, Why: err.Error()})
	case err != nil:
		m.post(core.RefusedEvent{ID: st.ID, Err: err})
	default:
		m.post(core.AcceptedEvent{ID: st.ID})
	}
}

// stage brings the files of another site's task here.
func (m *fileMover) stage(ctx context.Context, o stagein.Order) {
	n, err := m.stager.Fetch(ctx, o)
	m.progress.Record(executor.Event{ID: o.ID})
	if err == nil {
		m.post(core.StagedEvent{ID: o.ID, InBytes: n})
		return
	}
	fault := inputs.NoRoom
	var unstaged *stagein.Error
	if errors.As(err, &unstaged) {
		fault = unstaged.Fault
	}
	if m.ctx.Err() == nil {
		m.log.Info().Err(err).Stringer("attempt", o.ID).Msg("the files of a task are not here: it is not started")
	}
	m.post(core.UnstagedEvent{ID: o.ID, Fault: fault, Why: err.Error()})
	m.room.refused(o.ID, err)
}

// errToEnd is why what prepares a start ends.
var errToEnd = errors.New("it is to end before its start")

// end ends what prepares an attempt's start.
func (m *fileMover) end(id executor.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cancel := m.preparing[id]; cancel != nil {
		cancel(errToEnd)
	}
}

// endAll ends all that is being prepared: the tasks are handed back.
func (m *fileMover) endAll() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, cancel := range m.preparing {
		cancel(errToEnd)
	}
}

// lostOutputs is why those of an attempt are lost that was started under another configuration.
const lostOutputs = "its outputs could not be kept at its site: it keeps no files any more"

// collect keeps what an ended attempt has left, and tells the core.
func (m *fileMover) collect(h executor.Handler, e core.CollectEffect) {
	ev := core.CollectedEvent{ID: e.ID, Result: e.Result}
	c, ok := h.(executor.Collector)
	if !ok {
		ev.Lost = lostOutputs
		m.post(ev)
		return
	}
	out, err := m.outgoing.Collect(m.ctx, c, stageout.Order{
		ID: e.ID, Outputs: e.Outputs, Result: e.Result, Waits: m.waits(e.ID),
	})
	m.progress.RecordResult(e.ID, "")
	if err != nil {
		return // the broker ends; its next life collects again
	}
	m.room.release(e.ID)
	if out.Lost != "" && e.Result.Succeeded() {
		m.log.Warn().Stringer("attempt", e.ID).Str("reason", out.Lost).Msg("what a task left is lost, and it runs again")
	}
	ev.Output, ev.Failed, ev.Lost, ev.Note, ev.Ended = out.Output, out.Failed, out.Lost, out.Note, out.Ended
	m.post(ev)
}

// waits returns what tells people and the core that what an attempt has left waits for room.
func (m *fileMover) waits(id executor.ID) func(why string) {
	first := true
	return func(why string) {
		m.progress.RecordResult(id, why)
		if first {
			m.log.Warn().Stringer("attempt", id).Str("reason", why).Msg("a result waits for room: give data.own more, or free the disk")
			m.post(core.CollectWaitsEvent{ID: id})
		}
		first = false
	}
}

// recoverFiles pins what the store must keep for attempts that are here and for other sites that have not fetched what
// theirs left.
func (b *Broker) recoverFiles() error {
	if b.files == nil {
		return nil
	}
	for a := range b.core.WithInputs() {
		b.files.stager.Repin(a)
	}
	if err := b.files.outgoing.Recover(b.cfg.Journal); err != nil {
		return fmt.Errorf("recover from the journal: %w", err)
	}
	for a := range b.core.WithOutputs() {
		b.files.room.recover(a)
	}
	b.core.SetRoom(b.files.room.begin())
	return nil
}
