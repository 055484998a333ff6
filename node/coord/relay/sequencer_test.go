package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// quick is a backend that leads, and settles each entry after a while.
type quick struct {
	Backend
	sent []time.Time
	trip time.Duration // until an entry is ordered
}

func (q *quick) Orders() (term uint64, ok bool) { return 1, true }

func (q *quick) Append(uint64, []byte, []byte) (wait func() (Outcome, uint64)) {
	q.sent = append(q.sent, time.Now())
	n := uint64(len(q.sent))
	return func() (Outcome, uint64) {
		<-time.After(q.trip) // in a bubble: the entry's way
		return Ordered, n
	}
}

// TestReportsRest: reports that are alone keep a pause from the entry before, so
// that more of them share one; three of them do not, and whatever else comes goes at
// once and takes them along.
func TestReportsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quick{trip: time.Millisecond / 2}
		timing := Timing{Slots: 4, Gather: 256, EntryBytes: 1 << 20, Rest: 2 * time.Millisecond}
		s := newSequencer(q, nil, timing, Hooks{}, func() {})
		ctx, cancel := context.WithCancel(t.Context())
		go s.order(ctx)
		go s.settleEntries()
		begun, done := time.Now(), 0
		submit := func(after time.Duration, reports bool) {
			<-time.After(time.Until(begun.Add(after)))
			it := item{
				calls: []call{{commands: 1}}, commands: 1, cmds: [][]byte{{1}}, bytes: 1, reports: reports,
				done: func(Outcome, uint64) { done++ },
			}
			s.submit("a", it)
			synctest.Wait()
		}
		const us = time.Microsecond
		submit(0, true)         // 1st entry: nothing was before it
		submit(600*us, true)    // 2nd, after 2 ms,
		submit(1900*us, true)   // and this one with it
		submit(2600*us, true)   // 3rd, at once with
		submit(2800*us, false)  // this one
		submit(10_000*us, true) // 4th: long after it
		submit(10_600*us, true)
		submit(10_700*us, true)
		submit(10_800*us, true) // 5th, with the two before
		<-time.After(5 * time.Millisecond)
		cancel()
		synctest.Wait()
		want := []time.Duration{0, 2000 * us, 2800 * us, 10_000 * us, 10_800 * us}
		if len(q.sent) != len(want) || done != 9 {
			t.Fatalf("%d entries with %d calls, want %d with 9", len(q.sent), done, len(want))
		}
		for i, at := range q.sent {
			if got := at.Sub(begun); got != want[i] {
				t.Errorf("entry %d went after %v, want %v", i+1, got, want[i])
			}
		}
	})
}

// TestEntriesOverlapFarAway: where an entry takes a hundred milliseconds, calls wait a pace for others to share theirs,
// and not until an entry comes back; as long as there are slots, and many at once never.
func TestEntriesOverlapFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		q := &quick{trip: 100 * ms}
		s := newSequencer(q, nil, Timing{Slots: 4, Gather: 256, EntryBytes: 1 << 20, Pace: 3 * ms}, Hooks{}, func() {})
		ctx, cancel := context.WithCancel(t.Context())
		go s.order(ctx)
		go s.settleEntries()
		begun, done := time.Now(), 0
		submit := func(after time.Duration, calls int) {
			<-time.After(time.Until(begun.Add(after)))
			for range calls {
				s.submit("a", item{
					calls: []call{{commands: 1}}, commands: 1, cmds: [][]byte{{1}}, bytes: 1,
					done: func(Outcome, uint64) { done++ },
				})
			}
			synctest.Wait()
		}
		submit(0, 1)      // 1st entry
		submit(1*ms, 1)   // 2nd, a pace after it,
		submit(2*ms, 1)   // with this one
		submit(4*ms, 256) // 3rd, at once
		submit(30*ms, 1)  // 4th, at once
		submit(34*ms, 1)  // 5th: when the first has come back
		submit(300*ms, 1) // 6th: nothing is in flight
		<-time.After(time.Second)
		cancel()
		synctest.Wait()
		want := []time.Duration{0, 3 * ms, 4 * ms, 30 * ms, 100 * ms, 300 * ms}
		if len(q.sent) != len(want) || done != 262 {
			t.Fatalf("%d entries with %d calls, want %d with 262", len(q.sent), done, len(want))
		}
		for i, at := range q.sent {
			if got := at.Sub(begun); got != want[i] {
				t.Errorf("entry %d went after %v, want %v", i+1, got, want[i])
			}
		}
	})
}
