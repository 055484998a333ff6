package check

import "strings"

// Hashes remembers the hash of every entry that any broker showed.
type Hashes struct {
	seen     map[uint64]shownHash
	compared map[uint64]bool // entries that two brokers showed
}

type shownHash struct{ broker, hash string }

// See takes a look at a broker's state.
func (h *Hashes) See(broker string, index uint64, hash string) []Violation {
	if h.seen == nil {
		h.seen, h.compared = map[uint64]shownHash{}, map[uint64]bool{}
	}
	first, known := h.seen[index]
	if !known {
		h.seen[index] = shownHash{broker, hash}
		return nil
	}
	if first.broker != broker {
		h.compared[index] = true
	}
	if first.hash != hash {
		return []Violation{broken(SameState, "entry %d has hash %s at %s and %s at %s", index, first.hash, first.broker, hash, broker)}
	}
	return nil
}

// Compared returns the number of entries that were seen at two brokers or more.
func (h *Hashes) Compared() int { return len(h.compared) }

// Differs returns what a line of a broker's log says of states that differ: the
// brokers compare them, too.
func Differs(site, line string) []Violation {
	for _, text := range []string{
		"has another state than this one", "has another history than this one", "state differs from",
		"has signed two different",
	} {
		if strings.Contains(line, text) {
			return []Violation{broken(SameState, "log of %s: %s", site, line)}
		}
	}
	return nil
}
