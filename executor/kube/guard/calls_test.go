package guard

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// TestBellRingsAfterTheWait: a guard that is woken by something else leaves the bells that ring meanwhile to its next
// wait: it drained them, and the end of its task, or the order to end it, was lost.
func TestBellRingsAfterTheWait(t *testing.T) {
	sources, err := watchdog.NewSources()
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{watch: &watchdog.Watch{}}
	for source, bell := range map[watchdog.Source]*watchdog.Bell{
		watchdog.FromChild: &g.calls.child, watchdog.FromSignal: &g.calls.stop,
	} {
		if *bell, err = sources.Bell(source); err != nil {
			t.Fatal(err)
		}
		bell.Ring()
		g.Heard(0) // the clock woke it
		late := executor.Boottime() + int64(patience)
		if from, err := sources.Wait(late); err != nil || from != source {
			t.Errorf("woken by %v (%v), want %v", from, err, source)
		}
		g.Heard(source)
		if bell.Drain() {
			t.Errorf("the bell of %v goes on", source)
		}
	}
}
