package container

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// TestStandsWithItsEngineOnly: what is seen alive while the engine is away, and is gone when that is back, has not lost
// its first process while its engine stood: the engine's unit may have been killed as a whole, container by container.
func TestStandsWithItsEngineOnly(t *testing.T) {
	h, w := &Handler{presence: newPresence(reach{})}, &work{}
	look := func(when string, want bool) {
		t.Helper()
		if h.setStood(w, true); w.stood != want {
			t.Errorf("%s: it stands: %v", when, w.stood)
		}
	}
	look("before the engine was asked", false)
	h.presence.setUp(engine.Info{}, reach{})
	look("with its engine", true)
	h.presence.setAway(engine.ErrAway)
	look("without its engine", false)
	h.presence.setUp(engine.Info{}, reach{})
	look("with its engine again", true)
}
