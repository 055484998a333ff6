package local

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// next returns the handler's next event.
func (o *opened) next() executor.Event {
	o.Helper()
	select {
	case e := <-o.Events():
		return e
	case <-time.After(patience):
		o.Fatal("no event")
	}
	return executor.Event{}
}

// A start is told before the end, of a process that has ended before anybody was told
// as of one that runs on until it is told.
func TestStartIsToldBeforeTheEnd(t *testing.T) {
	o, _ := adopted(t, config(t))
	long := shell(2, "trap 'exit 0' TERM; while :; do sleep 0.01; done")
	for _, task := range []executor.Task{shell(1, "exit 0"), long} {
		o.begin(task)
		if e := o.next(); !e.Started || e.ID != task.ID {
			t.Errorf("first heard of %s: %+v", task.ID, e)
		}
		if task.ID == long.ID {
			if err := o.Stop(t.Context(), task.ID, "told"); err != nil {
				t.Fatal(err)
			}
		}
		if e := o.next(); e.Ended == nil || e.ID != task.ID {
			t.Errorf("then heard of %s: %+v", task.ID, e)
		}
	}
}
