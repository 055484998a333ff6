package relay

import (
	"fmt"
	"testing"
)

// BenchmarkTakeEntryCalls queues calls of some sites and fills entries with them, a call
// at a time: so many wait at each moment.
func BenchmarkTakeEntryCalls(b *testing.B) {
	for _, sites := range []int{1, 5, 1000} {
		for _, waiting := range []int{64, 4096, 65536} {
			b.Run(fmt.Sprintf("sites=%d/waiting=%d", sites, waiting), func(b *testing.B) {
				t := Timing{Slots: 4, Gather: 256, EntryBytes: 1 << 20, Quota: DefaultQuota()}
				s := newSequencer(&quick{}, nil, t, Hooks{}, func() {})
				names := make([]string, sites)
				for i := range names {
					names[i] = fmt.Sprintf("site-%03d", i)
				}
				it := item{
					calls: []call{{commands: 1}}, commands: 1, cmds: [][]byte{{1}}, bytes: 300,
					done: func(Outcome, uint64) {},
				}
				next, waits := 0, 0
				b.ReportAllocs()
				for n := 0; n < b.N; {
					for ; waits < waiting; waits++ {
						s.submit(names[next%sites], it)
						next++
					}
					s.queue.freeHeld(1 << 60)
					e, _ := s.takeEntryCalls(1)
					n += len(e.items)
					waits -= len(e.items)
				}
			})
		}
	}
}
