package results

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// TestRecentIsBounded in number, bytes and time.
func TestRecentIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c recent
		key := func(n uint64) manifestKey { return manifestKey{job: command.JobID{Site: "a", Num: n}} }
		keep := func(n uint64, size int64) { c.keep(key(n), size, map[string]files.Entry{"f": {}}) }
		for n := range uint64(10) {
			keep(n, 10)
			keep(n, 10)
		}
		if len(c.list) != maxRecent || c.bytes != 10*maxRecent || c.of(key(5)) != nil || c.of(key(6)) == nil {
			t.Errorf("%d kept with %d bytes", len(c.list), c.bytes)
		}
		keep(10, 10) // 7 goes: 6 was used later
		if c.of(key(6)) == nil || c.of(key(7)) != nil {
			t.Error("not the one used least recently went")
		}
		keep(11, maxRecentBytes)
		if len(c.list) != 1 || c.of(key(11)) == nil {
			t.Errorf("%d kept with %d bytes", len(c.list), c.bytes)
		}
		<-time.After(keepRecent + 1)
		synctest.Wait()
		if len(c.list) != 0 || c.bytes != 0 {
			t.Errorf("%d kept with %d bytes after %s", len(c.list), c.bytes, keepRecent)
		}
	})
}

// TestGoneIsSaidOnce: a lost file was told as "results gone: … results gone: …".
func TestGoneIsSaidOnce(t *testing.T) {
	id := command.JobID{Site: "a", Num: 1}
	said := fmt.Errorf("a file of it is lost: %w: %w", node.ErrResultsGone, store.ErrDamaged)
	for _, err := range []error{said, store.ErrDamaged} {
		err = gone(id, err)
		if !errors.Is(err, node.ErrResultsGone) || strings.Count(err.Error(), node.ErrResultsGone.Error()) != 1 {
			t.Error(err)
		}
	}
}
