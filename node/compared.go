package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Comparison is how this broker's state compares with other brokers'.
type Comparison struct {
	// Entry is the newest at which states were compared, 0 = none; With are the sites
	// that had the same one there.
	Entry uint64
	With  []string
	// Differs are the sites whose state was another one when it was compared last.
	Differs []Difference
	// Age of the last comparison, since the start if there was none; 0 while there is
	// nobody to compare with.
	Age time.Duration
}

// Difference is a site whose state differs, and the entry at which it did.
type Difference struct {
	Site  string
	Entry uint64
}

// compared returns what the log's members have found of each other.
func (b *Broker) compared() Comparison {
	log, ok := b.cfg.Log.(coord.Comparing)
	if !ok {
		return Comparison{}
	}
	c := log.Compared()
	out := Comparison{Entry: c.Entry, With: c.Same}
	for site, entry := range c.Differ {
		out.Differs = append(out.Differs, Difference{site, entry})
	}
	slices.SortFunc(out.Differs, func(a, b Difference) int { return cmp.Compare(a.Site, b.Site) })
	switch {
	case c.Alone:
	case c.At.IsZero():
		out.Age = time.Since(b.created)
	default:
		out.Age = time.Since(c.At)
	}
	return out
}
