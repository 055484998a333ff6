package tes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// bringers plays what brings inputs: each job's come when the test says so.
type bringers struct {
	*imports
	mu    sync.Mutex
	going map[uint64]chan struct{}
	begun []uint64
	ended map[uint64]error // by what
	left  []command.JobID  // that wait, as the broker says
}

func newBringers(t *testing.T) *bringers {
	t.Helper()
	b := &bringers{imports: newImports(zerolog.Nop()), going: map[uint64]chan struct{}{}, ended: map[uint64]error{}}
	b.bring = func(ctx context.Context, id command.JobID, _ string) {
		come := make(chan struct{})
		b.mu.Lock()
		b.going[id.Num], b.begun = come, append(b.begun, id.Num)
		b.mu.Unlock()
		var err error
		select {
		case <-come:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		b.mu.Lock()
		b.ended[id.Num] = err
		b.mu.Unlock()
	}
	b.awaiting = func(context.Context) ([]command.JobID, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Clone(b.left), nil
	}
	b.userOf = func(_ context.Context, id command.JobID) string { return fmt.Sprint("user", id.Num%2) }
	return b
}

func job(num uint64) command.JobID { return command.JobID{Site: "s", Num: num} }

// take has a task of a user's be imported.
func (b *bringers) take(t *testing.T, user string, nums ...uint64) {
	t.Helper()
	for _, num := range nums {
		if err := b.reserve(user); err != nil {
			t.Fatal(err)
		}
		b.imports.begin(job(num), user)
	}
}

// wantBegun compares what has begun, once nothing goes on.
func (b *bringers) wantBegun(t *testing.T, want ...uint64) {
	t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.begun)
	if !slices.Equal(b.begun, want) {
		t.Errorf("begun have %v, want %v", b.begun, want)
	}
}

func (b *bringers) come(num uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.going[num])
}

// TestInputsAreBroughtInTurns: so many tasks of one user at a time, and of all, the oldest first.
func TestInputsAreBroughtInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBringers(t)
		defer b.close()
		b.take(t, "alice", 1, 2, 3, 4, 5, 6)
		b.take(t, "bob", 7)
		b.wantBegun(t, 1, 2, 3, 4, 7)
		b.come(3)
		b.wantBegun(t, 1, 2, 3, 4, 5, 7)
		for i, user := range []string{"c", "d", "e"} {
			for n := range uint64(userBringing) {
				b.take(t, user, uint64(i)*10+100+n)
			}
		}
		synctest.Wait()
		if b.imports.going.all != maxBringing || len(b.queue) != 2 {
			t.Errorf("%d go on, %d wait", b.imports.going.all, len(b.queue))
		}
	})
}

// TestWaitingImportsAreBounded: by number, of one user and of all; the next one is told to come again, and a place that
// is given back is another's.
func TestWaitingImportsAreBounded(t *testing.T) {
	b := newBringers(t)
	defer b.close()
	for range userImports {
		if err := b.reserve("alice"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.reserve("alice"); !errors.Is(err, node.ErrFull) {
		t.Errorf("one more of hers: %v", err)
	}
	for _, user := range []string{"b", "c", "d"} {
		for range userImports {
			if err := b.reserve(user); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.reserve("e"); !errors.Is(err, node.ErrFull) {
		t.Errorf("one more of all: %v", err)
	}
	b.free("alice")
	if err := b.reserve("e"); err != nil {
		t.Error(err)
	}
}

// TestCancelledImportsEnd: those that go on, and those that wait for their turn.
func TestCancelledImportsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBringers(t)
		defer b.close()
		b.take(t, "alice", 1, 2, 3, 4, 5, 6)
		synctest.Wait()
		b.stop(5)
		b.stop(1)
		b.stop(99)
		b.wantBegun(t, 1, 2, 3, 4, 6)
		if err := b.ended[1]; !errors.Is(err, errCancelled) || len(b.ended) != 1 {
			t.Errorf("%v", b.ended)
		}
		for _, num := range []uint64{2, 3, 4, 6} {
			b.come(num)
		}
		synctest.Wait()
		if len(b.tasks)+len(b.queue)+len(b.held.of)+len(b.imports.going.of)+b.held.all != 0 {
			t.Errorf("left are %v %v %+v", b.tasks, b.queue, b.held)
		}
	})
}

// TestEarlierImportsGoOn: what the broker says to wait is brought once, whatever its number, also if nobody was told
// that it was accepted; after close nothing begins.
func TestEarlierImportsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBringers(t)
		b.left = []command.JobID{job(1), job(2)}
		b.start()
		b.wantBegun(t, 1, 2)
		b.come(1)
		b.mu.Lock()
		b.left = []command.JobID{job(2), job(3)}
		b.mu.Unlock()
		<-time.After(scanEvery)
		b.wantBegun(t, 1, 2, 3)
		b.close()
		if err := b.reserve("x"); !errors.Is(err, node.ErrStopping) || !errors.Is(b.ended[2], context.Canceled) {
			t.Errorf("%v, %v", err, b.ended)
		}
		b.close()
	})
}

// TestScansBeginNothingTwice: a job whose inputs came while a scan saw it wait is not brought again.
func TestScansBeginNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBringers(t)
		defer b.close()
		b.take(t, "alice", 1)
		b.wantBegun(t, 1)
		b.awaiting = func(context.Context) ([]command.JobID, error) {
			b.come(1)
			synctest.Wait()
			return []command.JobID{job(1)}, nil
		}
		if err := b.scan(); err != nil {
			t.Fatal(err)
		}
		b.wantBegun(t, 1)
	})
}

// TestHungImportsEndNoStop: who reads from a file system that hangs does not keep the broker from stopping. It did.
func TestHungImportsEndNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBringers(t)
		hangs := make(chan struct{})
		b.bring = func(context.Context, command.JobID, string) { <-hangs }
		b.take(t, "alice", 1)
		began := time.Now()
		b.close()
		if took := time.Since(began); took != closeFor {
			t.Errorf("closed after %s", took)
		}
		close(hangs)
		b.close()
		if took := time.Since(began); took != closeFor {
			t.Errorf("closed again after %s", took)
		}
	})
}
