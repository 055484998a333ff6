package raftlog

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// handOverByTurn gives the leadership away once it has lasted a turn: to the voter whose name follows this member's,
// or to the next one that would lead. The leader is one of the rivals: it sees what others propose before it is
// ordered, and orders its own calls among them. So what a member gains by that is bounded by its turn, and all have
// their turns, but for those that are far from a majority (far.go).
func (ld *leadership) handOverByTurn(ctx context.Context, h *handoverTracker, others []voterDisk, now time.Time) {
	if h.turn.IsZero() {
		h.turn = now
	}
	if now.Sub(h.turn) < ld.t.turn || !ld.handed[reasonTurn].Due(now) || !ld.member.Calls.Leads() {
		return
	}
	for _, v := range inTurn(ld.nearEnough(others, now), cmp.Or(h.passed, ld.cfg.Site)) {
		if v.ready && ld.asksToLead(ctx, v, reasonTurn) {
			ld.log.Info().Str("to", string(v.id)).Dur("led", now.Sub(h.turn)).Msg("this leader's turn is over: handing over")
			ld.transferTo(v, reasonTurn)
			h.passed = string(v.id) // if it does not take the leadership, the one behind it is next
			break
		}
	}
	h.turn = now.Add(ld.t.turn/60 - ld.t.turn) // if this member still leads: ask again a little later
}

// inTurn returns the voters in the order of their names, those behind a member first.
func inTurn(voters []voterDisk, site string) []voterDisk {
	sorted := slices.Clone(voters)
	slices.SortFunc(sorted, func(a, b voterDisk) int {
		first := func(v voterDisk) int {
			if string(v.id) > site {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.id, b.id))
	})
	return sorted
}
