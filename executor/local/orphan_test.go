package local

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// TestSupervisorsSignalledWithoutABroker: whoever ends all of a broker's control group, one after the other, makes no
// orphans of the tasks; a broker that looks does.
func TestSupervisorsSignalledWithoutABroker(t *testing.T) {
	cfg := config(t)
	o, _ := adopted(t, cfg)
	task := shell(1, "echo up; sleep 60")
	o.begin(task)
	o.firstLine(task)
	pid := o.slotOf(task).pid
	o.Close()
	signalSupervisor(t, pid, unix.SIGTERM)
	_, states := adopted(t, cfg)
	if len(states) != 1 || states[0].Ended == nil || states[0].Ended.Cause != executor.Vanished {
		t.Fatalf("got %+v, want one that is lost", states)
	}

	o, _ = adopted(t, config(t))
	o.begin(task)
	o.firstLine(task)
	if err := unix.Kill(o.slotOf(task).pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := o.end(task); r.Cause != executor.Orphaned {
		t.Fatalf("got %+v, want an orphan", r)
	}
}
