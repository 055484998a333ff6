package stageout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// onDisk has the store on a disk of so many bytes above what must stay free.
func (r *rig) onDisk(bytes int64) {
	r.cfg.Free = func() int64 {
		return bytes - r.store.Usage(store.Own).Bytes - r.store.Usage(store.Outgoing).Bytes
	}
}

// fail has tasks of other sites leave so many bytes each, and returns what tells which of them are there.
func (r *rig) fail(n, bytes int) (there func() string) {
	r.Helper()
	orders, outs := make([]Order, n), make([]Outcome, n)
	for i := range n {
		orders[i] = ended(fmt.Sprintf("a.%d", i+1), 1)
		r.now = r.now.Add(1)
		if outs[i] = r.collect(leaves(fmt.Sprint("failed", i), bytes), orders[i]); outs[i].Output.IsZero() {
			r.Fatalf("failure %d: %+v", i, outs[i])
		}
	}
	return func() string {
		text := ""
		for i := range n {
			if r.has(orders[i], outs[i]) == transfer.Granted {
				text += fmt.Sprint(i)
			}
		}
		return text
	}
}

// TestFailuresMakeRoomOnTheDisk: on a disk that has no more than must stay free, what failed tasks left goes for a
// result, whoever's, as much as the result takes; and none of it in vain.
func TestFailuresMakeRoomOnTheDisk(t *testing.T) {
	for name, c := range map[string]struct {
		disk int64 // above what must stay free
		job  string
		size int
		want string
		lost bool
	}{
		"room":                      {2 << 20, "c.1", 300_000, "012", false},
		"just full":                 {620_000, "c.1", 300_000, "2", false},
		"below what must stay free": {-10 << 20, "c.1", 100_000, "12", false},
		"own":                       {620_000, "b.1", 300_000, "2", false},
		"own, below":                {-10 << 20, "b.1", 100_000, "12", false},
		"more than all":             {0, "c.1", 900_000, "012", false}, // the disk itself has room
		"own, more than all":        {0, "b.1", 900_000, "012", true},
	} {
		r := newRig(t)
		there := r.fail(3, 200_000)
		r.onDisk(c.disk)
		o := ended(c.job, 0)
		o.Result.Started = r.now
		waits := false
		o.Waits = func(why string) {
			waits = strings.Contains(why, "there is room for")
			r.EndWait(o.ID)
		}
		out := r.collect(leaves("result", c.size), o)
		if out.Output.IsZero() != c.lost || waits != c.lost || there() != c.want {
			t.Errorf("%s: %+v, it waits: %t; of failures %q is there, want %q", name, out, waits, there(), c.want)
		}
	}
}

// TestQuotaOfOwnResultsTakesNoFailures: what others' failed tasks left is of no use to a result that its own quota has
// no room for.
func TestQuotaOfOwnResultsTakesNoFailures(t *testing.T) {
	r := fullRig(t)
	r.onDisk(2 << 20)
	there := r.fail(1, 10_000)
	var told []string
	o := r.ownOrder(0, &told)
	wait := o.Waits
	o.Waits = func(why string) {
		wait(why)
		r.EndWait(o.ID)
	}
	if out := r.collect(results(), o); !out.Ended || len(told) != 1 || there() != "0" {
		t.Errorf("%+v, told %q, of failures %q is there", out, told, there())
	}
}
