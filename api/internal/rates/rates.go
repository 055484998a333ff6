// Package rates bounds how often each of many may do something, in a table that does not grow. It knows neither
// requests nor users.
package rates

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	sets = 1024
	ways = 8 // 128 KiB in all
)

// Table bounds each key to so much a second. It is the generic cell rate algorithm: one moment tells all that a bucket
// of tokens would. Its size is fixed: a key that finds no slot takes that of whoever owes least, so that a flood from
// many addresses displaces those that have asked little, themselves mostly, and lets nobody off who asks much. All
// methods may be called from any goroutine, and of a nil Table, which bounds nothing.
type Table[K comparable] struct {
	cost, ahead int64 // ns
	now         func() int64
	seed        maphash.Seed // strangers cannot choose with whom they share a set
	sets        [sets]set
}

// set has the slots of the keys whose hashes fall on it.
type set struct {
	mu    sync.Mutex
	slots [ways]slot // guarded by mu
}

type slot struct {
	sum  uint64 // hash of the key
	paid int64  // until when what it has taken lasts, by the clock of now
}

// New bounds each key to n a second, of which so many seconds' worth may come at once; n 0 = nil: no bound.
func New[K comparable](n int, seconds int) *Table[K] {
	if n <= 0 {
		return nil
	}
	begin := time.Now()
	cost := max(int64(time.Second)/int64(n), 1)
	return &Table[K]{
		cost: cost, ahead: max(int64(seconds)*int64(time.Second), cost), seed: maphash.MakeSeed(),
		now: func() int64 { return int64(time.Since(begin)) },
	}
}

// Take counts one, or returns how long the key must wait for it.
func (t *Table[K]) Take(key K) (wait time.Duration) {
	if t == nil {
		return 0
	}
	sum, now := maphash.Comparable(t.seed, key), t.now()
	s := &t.sets[sum%sets]
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(sum)
	paid := max(at.paid, now) + t.cost
	if over := paid - now - t.ahead; over > 0 {
		return time.Duration(over)
	}
	at.paid = paid
	return 0
}

// find returns the slot of a key. REQUIRES: s.mu held.
func (s *set) find(sum uint64) *slot {
	least := &s.slots[0]
	for i := range s.slots {
		at := &s.slots[i]
		if at.sum == sum {
			return at
		}
		if at.paid < least.paid {
			least = at
		}
	}
	*least = slot{sum: sum}
	return least
}
