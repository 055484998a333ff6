package broker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// TestBusyStoreIsAskedAgain: files that are not to be had now are tried as long as a full disk is, those that are gone
// are not.
func TestBusyStoreIsAskedAgain(t *testing.T) {
	x := startLeaving(t, 1)[0].exporter
	for why, want := range map[error]time.Duration{
		wordsOfStore(store.ErrBusy): exportFor, exports.ErrAgain: exportFor,
		node.ErrResultsGone: 0, exports.ErrRefused: 0, node.ErrNotFound: 0,
	} {
		if got := x.patience(1, fmt.Errorf("a file: %w", why)); got != want {
			t.Errorf("%v: %s", why, got)
		}
	}
}

// TestExportsWaitForTheResults: after a restart nothing is brought anywhere until it is known which results are here.
func TestExportsWaitForTheResults(t *testing.T) {
	open, closed := make(chan struct{}), make(chan struct{})
	close(closed)
	for _, c := range []struct {
		current, loaded chan struct{}
		ready           bool
	}{{closed, closed, true}, {open, closed, false}, {closed, open, false}, {closed, nil, true}} {
		p := newProcess(zerolog.Nop(), nil)
		x := &exporter{process: p, b: &Broker{registrar: &registrar{current: c.current}}}
		if c.loaded != nil {
			x.b.owned = &ownFiles{loaded: c.loaded}
		}
		if !c.ready {
			p.cancel(context.Canceled)
		}
		if got := x.ready(); got != c.ready {
			t.Errorf("%+v: %v", c, got)
		}
		p.cancel(nil)
	}
}

// TestOneSlotAUser: while one's files are under way, those of others go.
func TestOneSlotAUser(t *testing.T) {
	s := startLeaving(t, 1)[0]
	s.exporter.slotOf("bob") <- struct{}{}
	id := s.attach(t, t.TempDir())
	s.handler.end(<-s.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	if end := s.exported(t, id); end.Why != "" {
		t.Errorf("%+v", end)
	}
	if a, b := s.exporter.slotOf("alice"), s.exporter.slotOf("bob"); cap(a) != 1 || len(a) != 0 || len(b) != 1 {
		t.Errorf("%d %d %d", cap(a), len(a), len(b))
	}
}

// TestUnknownEndIsLookedUpAgain: while it is not known how a task has ended, no end without an exit code is noted.
func TestUnknownEndIsLookedUpAgain(t *testing.T) {
	s := startLeaving(t, 1)[0]
	var asked atomic.Int32
	failed := make(chan struct{})
	s.exporter.tasks = func(ctx context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error) {
		if asked.Add(1) == 1 {
			close(failed)
			return nil, 0, fmt.Errorf("the core is busy: %w", node.ErrNotReady)
		}
		return s.FindTasks(ctx, id, q)
	}
	id := s.attach(t, t.TempDir())
	s.handler.end(<-s.handler.started, executor.Result{Started: time.Now(), Run: time.Second, ExitCode: 3})
	<-failed
	s.attach(t, t.TempDir()) // has all looked up
	if end := s.exported(t, id); end.State != "failed" || end.ExitCode == nil || *end.ExitCode != 3 {
		t.Errorf("%+v", end)
	}
}
