package local

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// signalled has a task's supervisor, of this broker's own or of the one before, signalled to end, and returns when this
// broker knows of the attempt's end.
func signalled(t *testing.T, cfg Config, adopt bool) (*opened, executor.Task) {
	t.Helper()
	o, _ := adopted(t, cfg)
	task := shell(1, "echo up; sleep 60")
	o.begin(task)
	o.firstLine(task)
	if adopt {
		o.Close()
		o, _ = adopted(t, cfg)
	}
	s := o.slotOf(task)
	if err := unix.Kill(s.pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); time.Now().Before(late); <-time.After(time.Millisecond) {
		o.mu.Lock()
		idle := s.current == nil
		o.mu.Unlock()
		if idle {
			return o, task
		}
	}
	t.Fatal("its end is not heard")
	return nil, task
}

// TestSupervisorSignalledWithItsBroker: SIGTERM to a broker and all that it has begun makes no orphans, whichever of
// them hears it first; a supervisor's alone does.
func TestSupervisorSignalledWithItsBroker(t *testing.T) {
	for name, adopt := range map[string]bool{"its own": false, "adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			cfg.strayFor = time.Hour
			o, task := signalled(t, cfg, adopt)
			o.BrokerStops()
			if r := o.end(task); r.Cause != executor.Vanished || r.Run <= 0 {
				t.Errorf("its broker is stopped: got %+v, want one that is lost", r)
			}

			cfg = config(t)
			cfg.strayFor = time.Hour
			o, task = signalled(t, cfg, adopt)
			if err := o.Stop(t.Context(), task.ID, "enough"); err != nil { // which has nothing to stop any more
				t.Error(err)
			}
			o.Close()
			for e := range o.Events() {
				if e.Ended != nil {
					t.Errorf("told %+v of a broker that was being closed", e.Ended)
				}
			}
			_, states := adopted(t, cfg)
			if len(states) != 1 || states[0].Ended == nil || states[0].Ended.Cause != executor.Vanished {
				t.Errorf("its broker is closed: got %+v, want one that is lost", states)
			}

			cfg.Dir, cfg.strayFor = t.TempDir(), time.Millisecond
			o, task = signalled(t, cfg, adopt)
			if r := o.end(task); r.Cause != executor.Orphaned || r.Run <= 0 {
				t.Errorf("its broker stands: got %+v, want an orphan", r)
			}
		})
	}
}

// TestEndOfASignalledSupervisor: who ends a broker with its tasks is not kept waiting by such an end.
func TestEndOfASignalledSupervisor(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.strayFor = time.Hour
	o, _ := signalled(t, cfg, true)
	if err := o.End(t.Context()); err != nil {
		t.Error(err)
	}
}
