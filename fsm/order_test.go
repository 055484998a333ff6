package fsm

import (
	"errors"
	"math"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// TestMayOrder: the next entry is the leader's of the term, or an elector's of a later one, but not of any.
func TestMayOrder(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.s.advanceTerm(w.s.term + 5)
	w.s.leader = "b"
	term := w.s.Term()
	for _, tt := range []struct {
		site string
		term uint64
		may  bool
	}{
		{"b", term, true},
		{"b", term + 1, true},
		{"a", term + 1, true},
		{"a", term + MaxTermStep, true},
		{"a", term, false},
		{"b", term - 1, false},
		{"a", 0, false},
		{"a", term + MaxTermStep + 1, false},
		{"a", math.MaxUint64, false},
		{"", term, false},
		{"nobody", term + 1, false},
	} {
		key, err := w.s.MayOrder(tt.site, tt.term)
		if (err == nil) != tt.may || err != nil && !errors.Is(err, ErrOrders) {
			t.Errorf("%q in term %d of %d: %v", tt.site, tt.term, term, err)
		}
		if tt.may && key != w.public(tt.site) {
			t.Errorf("%q signs with another key", tt.site)
		}
	}
	if keys := w.s.Orderers(); len(keys) != 3 || keys["c"] != w.public("c") {
		t.Errorf("%d may order", len(keys))
	}
	w.s.leader, w.s.term = "a", w.term // what the world's sites propose is of this term
	w.must("a", &command.Motion{What: command.MotionBan, Site: "c"})
	w.must("b", &command.Motion{What: command.MotionBan, Site: "c"})
	term = w.s.Term()
	if _, err := w.s.MayOrder("c", term+1); !errors.Is(err, ErrOrders) || w.s.Orderers()["c"] != (signature.Key{}) {
		t.Errorf("a banned site may order: %v", err)
	}
	w.s.leader = "" // as behind an import
	if _, err := w.s.MayOrder("a", term); err != nil {
		t.Errorf("in a term that nobody leads: %v", err)
	}
}

// TestWithoutRosterAllOrder: where nobody has a key all are believed.
func TestWithoutRosterAllOrder(t *testing.T) {
	if key, err := New().MayOrder("anybody", 1<<60); err != nil || key != (signature.Key{}) || New().Orderers() != nil {
		t.Errorf("%v, %v", key, err)
	}
}
