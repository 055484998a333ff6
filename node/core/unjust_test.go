package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
)

// rosterState is a state with what a roster says of the site.
type rosterState struct {
	*fsm.State
	member roster.Member
	epoch  uint64
	left   bool
}

func (s *rosterState) Member(string) (roster.Member, bool) { return s.member, true }
func (s *rosterState) Epoch() uint64                       { return s.epoch }
func (s *rosterState) SiteState(site string) (fsm.SiteState, uint64) {
	state, incarnation := s.State.SiteState(site)
	if s.left && state == fsm.SiteGone {
		state = fsm.Left
	}
	return state, incarnation
}

// declareLost has the leader declare a site lost; the site is not told of it.
func (r *rig) declareLost(s *rigSite) {
	r.t.Helper()
	v, _ := r.state.Site(s.name)
	by := r.sites[0]
	by.turn(VerdictEvent{Verdicts{Term: 1, Lost: []coord.Renewal{{Site: s.name, Incarnation: v.Incarnation}}}})
	mine := by.pending
	by.pending = nil
	by.turn(ResultEvent{Cmds: mine, Results: r.apply(mine...)})
	if v, _ = r.state.Site(s.name); v.State != fsm.SiteGone {
		r.t.Fatalf("%s is not lost", s.name)
	}
}

// TestLossUnderALease: a site that is declared lost says until when it had a lease, unless it is away for another
// reason than its silence.
func TestLossUnderALease(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(s *rosterState, c *Core)
		want          bool
	}{
		"lost": {want: true},
		"its key was replaced long before": {
			before: func(s *rosterState, _ *Core) { s.member.Key = signature.Key{2} }, want: true,
		},
		"banned":               {after: func(s *rosterState, _ *Core) { s.member.Banned = true }},
		"its key was replaced": {after: func(s *rosterState, _ *Core) { s.member.Key = signature.Key{2} }},
		"another epoch":        {after: func(s *rosterState, _ *Core) { s.epoch++ }},
		"forgotten":            {after: func(s *rosterState, _ *Core) { s.left = true }},
		"it has left itself":   {after: func(_ *rosterState, c *Core) { c.gone = true }},
		"the lease was of an earlier incarnation": {
			after: func(_ *rosterState, c *Core) { c.lease.incarnation-- },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, command.DefaultParams(), 1, 1)
			b := r.sites[1]
			s := &rosterState{State: r.state, member: roster.Member{Key: signature.Key{1}}}
			until := r.boottime() + int64(time.Minute)
			b.core.lease.until = 0
			b.lease(time.Minute)
			step := func() *Effects {
				fx := &Effects{}
				b.core.Step(StateEvent{}, s, fx)
				b.core.Settle(s, fx)
				return fx
			}
			if c.before != nil {
				c.before(s, b.core)
			}
			if fx := step(); fx.LostBefore != 0 {
				t.Fatalf("lost before %d while it was present", fx.LostBefore)
			}
			r.declareLost(b)
			if c.after != nil {
				c.after(s, b.core)
			}
			want := int64(0)
			if c.want {
				want = until
			}
			if fx := step(); fx.LostBefore != want {
				t.Errorf("lost before %d, want %d", fx.LostBefore, want)
			}
			if fx := step(); fx.LostBefore != 0 {
				t.Error("it says so twice")
			}
		})
	}
}
