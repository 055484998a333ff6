package tes

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
)

// TestPatience: a full or busy store is waited for, a host less long; what is refused is so at once.
func TestPatience(t *testing.T) {
	host := errors.New("the host failed")
	tasks := &Tasks{Config: Config{HostFailed: host}}
	for why, want := range map[error]time.Duration{
		node.ErrStorageFull: storePatience, node.ErrNotReady: storePatience, host: hostPatience,
		exports.ErrRefused: 0, node.ErrEnded: 0, errFile: 0,
	} {
		if got := tasks.patience(fmt.Errorf("inputs.0: %w", why)); got != want {
			t.Errorf("%v: %s", why, got)
		}
	}
}

// TestPatienceBeginsWithAFailure: an import that took hours and then finds the store full is tried again for as long as
// one that finds it so at once. It was given up at its first failure.
func TestPatienceBeginsWithAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := &Tasks{}
		tries := 0
		err := keepTrying(t.Context(), func() error {
			if tries++; tries == 1 {
				<-time.After(2 * storePatience)
			}
			if tries < 5 {
				return node.ErrStorageFull
			}
			return nil
		}, tasks.patience)
		if err != nil || tries != 5 {
			t.Errorf("%d tries, %v", tries, err)
		}
		began := time.Now()
		err = keepTrying(t.Context(), func() error { return node.ErrStorageFull }, tasks.patience)
		took := time.Since(began)
		if !errors.Is(err, node.ErrStorageFull) || took < storePatience || took > 2*storePatience {
			t.Errorf("%v after %s", err, took)
		}
	})
}
