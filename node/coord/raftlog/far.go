package raftlog

import (
	"context"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
)

// farLimits are lower than those of other reasons: a far leader costs time, and where the voters are changes seldom.
var farLimits = facade.Limits{First: 2 * time.Minute, Longest: time.Hour, Hourly: 4}

// places returns the voters as this leader sees them.
func (ld *leadership) places(others []voterDisk, now time.Time) *places {
	self := ld.cfg.Site
	p := &places{
		self: self, voters: []string{self}, trips: ld.trips.table(self, now), syncs: map[string]time.Duration{},
		absent: map[string]bool{},
	}
	if own, known := ld.store.Latency(now); known {
		p.syncs[self] = own
	}
	for _, v := range others {
		site := string(v.id)
		p.voters = append(p.voters, site)
		p.absent[site] = !v.ready
		if trip, ok := p.trips.between(self, site); ok && v.known {
			p.syncs[site] = max(v.alone-trip, 0) // without the way there
		}
	}
	return p
}

// calm reports whether a condition has held at each look since long ago.
func calm(since *time.Time, holds bool, now time.Time, least time.Duration) bool {
	switch {
	case !holds:
		*since = time.Time{}
	case since.IsZero():
		*since = now
	}
	return holds && now.Sub(*since) >= least
}

// handOverFar hands over if other voters were much nearer to a majority at each look for long enough, and lately one of
// them was better by its disk, too: how long disks take varies with the load, and would seldom say so for long.
func (ld *leadership) handOverFar(ctx context.Context, h *handoverTracker, others []voterDisk, now time.Time) {
	p := ld.places(others, now)
	better := p.better()
	far, due := calm(&h.far, len(p.nearer()) > 0, now, ld.t.far), calm(&h.better, len(better) > 0, now, ld.t.slow)
	if !far || !due || noFarHandover || !ld.handed[reasonFar].Due(now) || !ld.member.Calls.Leads() {
		return
	}
	h.better = time.Time{} // look again for a while before voters are asked again
	for _, site := range better {
		v := others[slices.IndexFunc(others, func(v voterDisk) bool { return string(v.id) == site })]
		if !ld.asksToLead(ctx, v, reasonFar) {
			continue
		}
		own, _ := p.majority(p.self)
		its, _ := p.majority(site)
		ld.log.Info().Dur("majority_ms", own).Dur("its_majority_ms", its).Str("to", site).
			Msg("this leader is far from a majority of the voters: handing over to one that is near")
		ld.transferTo(v, reasonFar)
		return
	}
}

// hastening marks voters as not ready under which entries would not be committed sooner: what a disk gains must not be
// lost on the way, or the leadership would come back.
func (ld *leadership) hastening(others []voterDisk, now time.Time) []voterDisk {
	p, out := ld.places(others, now), slices.Clone(others)
	for i, v := range out {
		out[i].ready = v.ready && p.hastens(string(v.id))
	}
	return out
}

// nearEnough returns the voters that lead in their turns.
func (ld *leadership) nearEnough(others []voterDisk, now time.Time) []voterDisk {
	p := ld.places(others, now)
	return slices.DeleteFunc(slices.Clone(others), func(v voterDisk) bool { return !p.hasTurns(string(v.id)) })
}

var _ coord.Placed = (*Log)(nil)

// Placement implements coord.Placed.
func (l *Log) Placement() coord.Placement {
	others, now := l.votersBeside(), time.Now()
	if len(others) == 0 {
		return coord.Placement{}
	}
	self := l.cfg.Site
	p := places{self: self, voters: []string{self}, trips: l.leadership.trips.table(self, now)}
	for _, s := range others {
		p.voters = append(p.voters, string(s.ID))
	}
	out := coord.Placement{Trips: p.trips[self], Majorities: map[string]time.Duration{}}
	for _, v := range p.voters {
		if d, ok := p.majority(v); ok {
			out.Majorities[v] = d
		}
		if p.hasTurns(v) {
			out.Turns = append(out.Turns, v)
		}
	}
	slices.Sort(out.Turns)
	return out
}
