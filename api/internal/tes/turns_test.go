package tes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// TestInputsAreBroughtInTurns: so many tasks of one user at a time, and of all; who waits for too long is told to send
// the task again.
func TestInputsAreBroughtInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newTurns()
		var done []func()
		take := func(user string) {
			t.Helper()
			d, err := u.bring(t.Context(), user)
			if err != nil {
				t.Fatal(err)
			}
			done = append(done, d)
		}
		for range userBringing {
			take("alice")
		}
		if _, err := u.bring(t.Context(), "alice"); !errors.Is(err, node.ErrFull) {
			t.Errorf("one more of hers: %v", err)
		}
		for _, user := range []string{"bob", "carol", "dave"} {
			for range userBringing {
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
		if u.all != 0 || len(u.of) != 0 {
			t.Errorf("%d under way, %v", u.all, u.of)
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
	if err := u.read(ctx, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("one more was read: %v", err)
	}
	<-u.parsing
	if err := u.read(t.Context(), func() error { return errFile }); !errors.Is(err, errFile) {
		t.Errorf("read: %v", err)
	}
}

var errFile = errors.New("any")
