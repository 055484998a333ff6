package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
)

// compared returns what the log's members have found of each other.
func (b *Broker) compared() node.Comparison {
	log, ok := b.cfg.Log.(coord.Comparing)
	if !ok {
		return node.Comparison{}
	}
	c := log.Compared()
	out := node.Comparison{Entry: c.Entry, With: c.Same}
	for site, entry := range c.Differ {
		out.Differs = append(out.Differs, node.Difference{Site: site, Entry: entry})
	}
	slices.SortFunc(out.Differs, func(a, b node.Difference) int { return cmp.Compare(a.Site, b.Site) })
	switch {
	case c.Alone:
	case c.At.IsZero():
		out.Age = time.Since(b.created)
	default:
		out.Age = time.Since(c.At)
	}
	return out
}
