package priorities

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// view is a state that has some jobs, and nothing else.
type view struct {
	turn.StateReader
	version uint32
	jobs    map[uint64]fsm.TaskState
}

func (v *view) Version() uint32            { return v.version }
func (v *view) Retired(command.JobID) bool { return false }

func (v *view) TaskCounts(id command.JobID) (c fsm.Counts, known bool) {
	state, known := v.jobs[id.Num]
	if known {
		c[state] = 1
	}
	return c, known
}

func nowhere(uint64) bool { return false }

// TestWishesAreBounded: so many jobs may wait for another priority, and so many requests for that of one job; a job
// that waits already can be given yet another one, and what is done makes room.
func TestWishesAreBounded(t *testing.T) {
	now, out, fx := turn.Clock{Boot: 1}, turn.Outbox{}, &turn.Effects{}
	b := NewBook("a", &now, &out)
	for num := range uint64(MaxWishes) {
		if err := b.Want(num+1, 5, Sent, nil, fx); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Want(MaxWishes+1, 5, Sent, nil, fx); !errors.Is(err, node.ErrFull) || b.Len() != MaxWishes {
		t.Errorf("one more: %v", err)
	}
	var got []error
	for i := range maxWaiters + 1 {
		err := b.Want(1, 6, Published, func(err error) { got = append(got, err) }, fx)
		if (i == maxWaiters) != errors.Is(err, node.ErrFull) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	*fx = turn.Effects{}
	s := &view{version: command.GatesVersion, jobs: map[uint64]fsm.TaskState{1: fsm.TaskSucceeded, 2: fsm.Queued}}
	b.Settle(s, nowhere, fx)
	for _, reply := range fx.Replies {
		reply()
	}
	if len(got) != maxWaiters || !errors.Is(got[0], node.ErrEnded) || b.Len() != MaxWishes-1 {
		t.Errorf("%d were told: %v; %d are left", len(got), got[0], b.Len())
	}
	if err := errors.Join(b.Check(), b.Want(MaxWishes+1, 5, Sent, nil, fx)); err != nil {
		t.Error(err)
	}
}

// TestWishesForNobodyEnd: a wish for a job that nobody knows is dropped after a while, whatever version is in force,
// and leaves nothing behind.
func TestWishesForNobodyEnd(t *testing.T) {
	for _, version := range []uint32{1, command.GatesVersion} {
		now, out, fx := turn.Clock{Boot: 1}, turn.Outbox{}, &turn.Effects{}
		b := NewBook("a", &now, &out)
		told := errors.New("nobody was told")
		if err := b.Want(7, 5, Sent, func(err error) { told = err }, fx); err != nil {
			t.Fatal(err)
		}
		s := &view{version: version}
		for _, at := range []int64{2, forgetAfter, forgetAfter + 2} {
			now.Boot = at
			b.Settle(s, nowhere, fx)
			if want := at < forgetAfter+2; (b.Len() == 1) != want {
				t.Errorf("version %d at %d: %d wishes", version, at, b.Len())
			}
		}
		for _, reply := range fx.Replies {
			reply()
		}
		if !errors.Is(told, node.ErrNotFound) || len(b.due) != 0 {
			t.Errorf("version %d: %v, %d due", version, told, len(b.due))
		}
	}
}

// TestWishesOfEndedJobsAreNotListed: jobs that end before the command is known to all leave the list of what is due.
func TestWishesOfEndedJobsAreNotListed(t *testing.T) {
	now, out, fx := turn.Clock{Boot: 1}, turn.Outbox{}, &turn.Effects{}
	b := NewBook("a", &now, &out)
	s := &view{version: 1, jobs: map[uint64]fsm.TaskState{}}
	for num := range uint64(1000) {
		s.jobs[num+1] = fsm.Queued
		if err := b.Want(num+1, 5, Sent, nil, fx); err != nil {
			t.Fatal(err)
		}
		b.Settle(s, nowhere, fx)
		if num%10 > 0 {
			s.jobs[num+1] = fsm.TaskSucceeded
		}
		b.Settle(s, nowhere, fx)
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.due) > 2*b.Len() {
		t.Error(fmt.Sprint(len(b.due), " due of ", b.Len()))
	}
}
