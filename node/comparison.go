package node

import (
	"time"
)

// Comparison is how this broker's state compares with other brokers'.
type Comparison struct {
	// Entry is the newest at which states were compared, 0 = none; With are the sites
	// that had the same one there.
	Entry uint64
	With  []string
	// Differs are the sites whose state, or history, was another one when it was compared last.
	Differs []Difference
	// Liars are the sites of which it is proven that they have signed two different
	// histories or states of the entry.
	Liars []Difference
	// Unsure says why this broker starts nothing for other sites; "" = it does.
	Unsure string
	// Age of the last comparison, since the start if there was none; 0 while there is
	// nobody to compare with.
	Age time.Duration
}

// Difference is a site whose state differs, and the entry at which it did.
type Difference struct {
	Site  string
	Entry uint64
}
