package check

import "sync"

// Indexes remembers how far each broker's answers were: X-CloudShare-Index never
// falls at a broker, not even across its restarts, as long as it says that it
// knows the state. Safe for concurrent use.
type Indexes struct {
	mu   sync.Mutex
	seen map[string]uint64
}

// At returns the greatest index that a broker has answered with: ask before a
// request.
func (x *Indexes) At(broker string) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen[broker]
}

// See takes a look at an answer to a request before which At was least.
func (x *Indexes) See(broker string, least, index uint64) []Violation {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen == nil {
		x.seen = map[string]uint64{}
	}
	x.seen[broker] = max(x.seen[broker], index)
	if index < least {
		return []Violation{broken(Linear, "%s answered with the state of entry %d after it had answered with that of entry %d", broker, index, least)}
	}
	return nil
}
