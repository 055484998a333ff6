package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestRaise: a version is in force from the next entry on. A broker whose code does not know it applies the raising
// entry correctly, like all others, and stops before the next one; it does not start on a snapshot of such a state
// either.
func TestRaise(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	if v, next := w.s.Version(), w.s.NextVersion(); v != command.FirstVersion || next != Version {
		t.Fatalf("version %d, next %d after genesis", v, next)
	}
	for _, site := range []string{"a", "b"} {
		if r := w.do(site, &command.Raise{Version: Version + 1}); r.Code != command.VersionTooNew ||
			w.s.Version() != command.FirstVersion {
			t.Fatalf("raised to what not all know: %v, version %d", r.Code, w.s.Version())
		}
		c := w.registration(site, nil, nil)
		c.Body.(*command.Register).MaxVersion = Version + 1
		w.inc[site], w.seq[site] = w.apply(c)[0].Incarnation, 0
	}
	before := w.s.Hash()
	rs := w.apply(
		w.cmd("a", &command.Raise{Version: Version + 1}), w.cmd("b", &command.Raise{Version: Version + 1}),
		w.cmd("b", w.offering("b", 1)),
	)
	for i, r := range rs {
		if r.Code != command.OK {
			t.Errorf("command %d: %v", i, r.Code)
		}
	}
	if w.s.Version() != Version+1 || w.s.Hash() == before {
		t.Fatalf("version %d", w.s.Version())
	}

	index, hash := w.s.Index(), w.s.Hash()
	_, err := w.s.Apply(&command.Batch{Term: w.term})
	if !errors.Is(err, ErrNewVersion) || !strings.Contains(err.Error(), "upgrade this broker") {
		t.Errorf("applied by rules that are not known: %v", err)
	}
	if w.s.Index() != index || w.s.Hash() != hash {
		t.Error("what was refused changed the state")
	}
	_, err = Restore(bytes.NewReader(snapshotOf(t, w.s)))
	remedy := fmt.Sprintf("version %d, this broker knows %d: upgrade", Version+1, Version)
	if !errors.Is(err, ErrNewVersion) || !errors.Is(err, ErrBadSnapshot) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("restored by rules that are not known: %v", err)
	}
}

// TestOlderBrokerIsRefused: the version in force decides, not what this code knows.
func TestOlderBrokerIsRefused(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.s.version = Version + 1
	old := w.registration("b", nil, nil)
	// The command alone: an entry could not be applied.
	if r := w.s.register("b", old.Body.(*command.Register)); r.Code != command.VersionTooNew ||
		!strings.Contains(r.Code.String(), "upgrade") {
		t.Errorf("a broker that knows less than what is in force: %v", r.Code)
	}
}

// TestRaisedVersionGoesOn: a program that knows the raised version continues with it, also from a snapshot.
func TestRaisedVersionGoesOn(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.s.bounds.version = Version + 1
	c := w.registration("a", nil, nil)
	c.Body.(*command.Register).MaxVersion = Version + 1
	w.inc["a"], w.seq["a"] = w.apply(c)[0].Incarnation, 0
	w.must("a", &command.Raise{Version: Version + 1})
	w.submit("a", w.job("a", 1))
	twin, err := reborn(w.s)
	if err != nil || twin.Version() != Version+1 || twin.Hash() != w.s.Hash() {
		t.Fatalf("restored: version %d, %v", twin.Version(), err)
	}
	w.must("a", w.offering("a", 1))
	if len(w.s.Assignments("a")) != 1 {
		t.Error("nothing runs by the raised version")
	}
	w.check()
}
