package results

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/files"
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
