package relay

import (
	"context"
	"errors"
	"testing"
)

// overtaken leads term 1, and learns of term 2 while it decides.
type overtaken struct {
	Backend
	asked int
}

func (o *overtaken) Lead() (to Peer, self bool)     { return Peer{}, true }
func (o *overtaken) Orders() (term uint64, ok bool) { return 1, true }
func (o *overtaken) Term() uint64                   { return uint64(min(1+o.asked, 2)) }
func (o *overtaken) Demote(context.Context, string) error {
	if o.asked++; o.asked == 1 {
		return errors.New("the other voters form no quorum")
	}
	return nil
}

// TestFormerLeadsRefusal: what a leader refuses that is deposed meanwhile is asked
// again, of the next one.
func TestFormerLeadsRefusal(t *testing.T) {
	o := &overtaken{}
	c := New(t.Context(), Config{Site: "a", Backend: o}, [16]byte{}, [16]byte{})
	c.seq.ready.Store(1)
	if err := c.demote(t.Context()); err != nil || o.asked != 2 {
		t.Errorf("asked %d times: %v", o.asked, err)
	}
}
