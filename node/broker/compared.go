package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// compared returns what the log's members have found of each other.
func (b *Broker) compared() node.Comparison {
	log, ok := b.cfg.Log.(coord.Comparing)
	if !ok {
		return node.Comparison{}
	}
	c := log.Compared()
	out := node.Comparison{
		Entry: c.Entry, With: c.Same, Unsure: c.Unsure, Differs: bySite(c.Differ), Liars: bySite(c.Liars),
	}
	switch {
	case c.Alone:
	case c.At.IsZero():
		out.Age = time.Since(b.created)
	default:
		out.Age = time.Since(c.At)
	}
	return out
}

// bySite lists sites and entries.
func bySite(entries map[string]uint64) []node.Difference {
	var out []node.Difference
	for _, site := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, node.Difference{Site: site, Entry: entries[site]})
	}
	return out
}

// watchUnsure tells the core, until the broker stops, whether it may begin work of other sites.
func (b *Broker) watchUnsure() {
	log, compares := b.cfg.Log.(coord.Comparing)
	if !compares {
		return
	}
	tick := time.NewTicker(core.TickEvery)
	defer tick.Stop()
	for told := ""; ; {
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			return
		}
		if now := log.Compared().Unsure; now != told && b.post(core.UnsureEvent{Why: now}) {
			told = now
		}
	}
}
