package tes

import (
	"errors"
	"fmt"
	"testing"
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
