package inputs

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// TestWhatDoesNotFitSaysNothingOfOthers: but for an owner of many such jobs, until they have rested; what the owner
// does not give, or this site cannot take from anybody, holds for its other jobs, too.
func TestWhatDoesNotFitSaysNothingOfOthers(t *testing.T) {
	clock := &turn.Clock{}
	b := NewBook(clock)
	job := func(num uint64) command.JobID { return command.JobID{Site: "a", Num: num} }
	for num := uint64(1); num <= maxUnfitting+2; num++ {
		b.Failed(job(num), Full, "no room")
		if got, want := b.Alike(job(num), Full), num > maxUnfitting; got != want {
			t.Errorf("of %d jobs that do not fit: %t", num, got)
		}
	}
	if other := (command.JobID{Site: "b", Num: 1}); b.Alike(other, Full) {
		t.Error("another owner's jobs do not count")
	}
	b.Fits(job(1))
	b.Fits(job(2))
	if b.Alike(job(3), Full) {
		t.Error("two fit again")
	}
	clock.Boot += int64(longestRest)
	if b.Alike(job(maxUnfitting), Full) {
		t.Error("all have rested")
	}
	for f, want := range map[Fault]bool{
		Cancelled: false, Away: true, Refused: true, NoRoom: true, Unfit: false, Broken: true,
	} {
		if got := b.Alike(job(99), f); got != want {
			t.Errorf("fault %d: %t, want %t", f, got, want)
		}
	}
}
