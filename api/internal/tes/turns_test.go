package tes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// TestFilesAreLookedForInTurns: so many requests of one user at a time, and of all; who waits for too long is told to
// send the task again.
func TestFilesAreLookedForInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newTurns()
		var done []func()
		take := func(user string) {
			t.Helper()
			d, err := u.look(t.Context(), user)
			if err != nil {
				t.Fatal(err)
			}
			done = append(done, d)
		}
		for range userLooking {
			take("alice")
		}
		if _, err := u.look(t.Context(), "alice"); !errors.Is(err, node.ErrFull) {
			t.Errorf("one more of hers: %v", err)
		}
		for _, user := range []string{"bob", "carol", "dave"} {
			for range userLooking {
				take(user)
			}
		}
		began := time.Now()
		go func() {
			<-time.After(time.Second)
			done[0]()
		}()
		take("erin") // when alice has one less
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited for %v", waited)
		}
		for _, d := range done[1:] {
			d()
		}
		if u.looks.all != 0 || len(u.looks.of) != 0 {
			t.Errorf("under way are %+v", u.looks)
		}
	})
}

// TestTextsAreReadInTurns: at most so many are read at a time.
func TestTextsAreReadInTurns(t *testing.T) {
	u := newTurns()
	for range maxParsed {
		u.parsing <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.read(ctx, MaxBody, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("one more was read: %v", err)
	}
	<-u.parsing
	if err := u.read(t.Context(), MaxBody, func() error { return errFile }); !errors.Is(err, errFile) {
		t.Errorf("read: %v", err)
	}
}

var errFile = errors.New("any")

// TestLargeTextsHoldUpNoSmallOnes: while large texts are read, small ones are as well, and a large one waits.
func TestLargeTextsHoldUpNoSmallOnes(t *testing.T) {
	u := newTurns()
	for range cap(u.parsing) {
		u.parsing <- struct{}{}
	}
	read := false
	if err := u.read(t.Context(), smallText, func() error { read = true; return nil }); err != nil || !read {
		t.Errorf("a small one: %t, %v", read, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.read(ctx, smallText+1, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a large one: %v", err)
	}
}
