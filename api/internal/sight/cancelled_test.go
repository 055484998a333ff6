package sight

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// canceller is a broker of site-1 that answers each cancellation so.
type canceller struct {
	Broker
	err error
}

func (*canceller) Site() string         { return "site-1" }
func (*canceller) UserOf(uint64) string { return "alice" }

func (b *canceller) Cancel(context.Context, command.JobID) error { return b.err }

func (b *canceller) CancelAll(_ context.Context, targets []node.CancelTarget) []error {
	out := make([]error, len(targets))
	for i := range out {
		out[i] = b.err
	}
	return out
}

func job(num uint64) command.JobID { return command.JobID{Site: "site-1", Num: num} }

// What was refused leaves nothing: in the order it stayed, so that who had an ended job cancelled over and over pushed
// out what was known of all others.
func TestRefusedCancellationsPushNobodyOut(t *testing.T) {
	b := &canceller{}
	r := New(b)
	alice := node.WithAsker(t.Context(), node.Asker{User: "alice"})
	if err := r.Cancel(alice, job(1)); err != nil {
		t.Fatal(err)
	}
	b.err = fmt.Errorf("cancel: %w", node.ErrEnded)
	for range maxCancelled + 1 {
		if err := r.Cancel(alice, job(2)); !errors.Is(err, node.ErrEnded) {
			t.Fatal(err)
		}
		r.CancelAll(alice, []node.CancelTarget{{Job: job(3)}})
	}
	if n := len(r.cancelled.order); n != 1 || len(r.cancelled.by) != 1 {
		t.Errorf("%d are in order, %d known", n, len(r.cancelled.by))
	}
	if by := r.CancelledBy(job(1), fsm.TaskCancelled.String()); by != "alice" {
		t.Errorf("by %q", by)
	}
}

// An undone note between others takes none of theirs, and one that was pushed out meanwhile nothing at all.
func TestUndoTakesItsOwnNote(t *testing.T) {
	var c cancelled
	undo := c.note(0, "alice")
	second := c.note(1, "bob")
	c.note(2, "carol")
	second()
	for num := range uint64(maxCancelled) - 1 {
		c.note(3+num, "dave")
	}
	undo()
	if c.of(0) != "" || c.of(1) != "" || c.of(2) != "carol" || len(c.order) != maxCancelled || len(c.by) != maxCancelled {
		t.Errorf("%q, %q, %q; %d in order, %d known", c.of(0), c.of(1), c.of(2), len(c.order), len(c.by))
	}
}

// Who hangs up has cancelled all the same; only a refusal takes it back, and another site's job has no note.
func TestWhoHangsUpHasCancelled(t *testing.T) {
	ctx := node.WithAsker(t.Context(), node.Asker{User: "alice"})
	for _, c := range []struct {
		err error
		by  string
	}{
		{nil, "alice"},
		{context.Canceled, "alice"},
		{node.ErrNoQuorum, "alice"},
		{errors.New("another token is needed"), "alice"}, // it has ended meanwhile
		{node.ErrEnded, ""},
		{node.ErrNotFound, ""},
		{node.ErrNotReady, ""},
		{node.ErrFull, ""},
	} {
		b := &canceller{}
		if c.err != nil {
			b.err = fmt.Errorf("cancel job: %w", c.err)
		}
		one, all := New(b), New(b)
		if err := one.Cancel(ctx, job(1)); !errors.Is(err, c.err) {
			t.Fatal(err)
		}
		all.CancelAll(ctx, []node.CancelTarget{{Job: job(1)}})
		for _, r := range []*Rule{one, all} {
			if by := r.CancelledBy(job(1), fsm.TaskCancelled.String()); by != c.by {
				t.Errorf("%v: by %q, want %q", c.err, by, c.by)
			}
		}
	}
	r := New(&canceller{})
	other := node.WithAsker(t.Context(), node.Asker{Site: "site-2"})
	if err := r.Cancel(other, command.JobID{Site: "site-2", Num: 1}); err != nil || len(r.cancelled.by) != 0 {
		t.Errorf("%v, %d known", err, len(r.cancelled.by))
	}
}
