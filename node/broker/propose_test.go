package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// refusing is a log whose leader takes nothing that only a leader says.
type refusing struct {
	coord.Log
	calls chan []command.Command
}

// Propose implements coord.Log.
func (l *refusing) Propose(_ context.Context, cmds ...command.Command) ([]command.Result, error) {
	l.calls <- cmds
	if slices.ContainsFunc(cmds, func(c command.Command) bool { return c.Body.Kind().OfLeader() }) {
		return nil, coord.ErrRefused
	}
	return make([]command.Result, len(cmds)), nil
}

// What a broker has said as the leader, and another one leads by now: its number is filled, what else it says is
// ordered, and the broker goes on.
func TestVerdictsOfAFormerLeader(t *testing.T) {
	p := newProcess(zerolog.Nop(), func(err error) error { return err })
	o := &proposer{process: p, order: &refusing{calls: make(chan []command.Command, 16)}}
	own := []command.Body{
		&command.Suspect{Site: "b", On: true},
		&command.Raise{Version: 2},
		&command.GossipKey{},
		&command.SiteLost{},
	}
	cmds := []command.Command{{ID: command.ID{Site: "a", Seq: 9}, Body: &command.Offer{}}}
	for i, body := range own {
		cmds = append(cmds, command.Command{ID: command.ID{Site: "a", Seq: uint64(i + 1)}, Body: body})
	}
	o.proposeAll(cmds)
	p.wg.Wait()
	filled := map[uint64]bool{}
	for range cmds {
		r, ok := (<-p.events).(core.ResultEvent)
		if !ok || r.Err != nil || len(r.Cmds) != 1 {
			t.Fatalf("%+v", r)
		}
		_, nothing := r.Cmds[0].Body.(*command.Started)
		filled[r.Cmds[0].ID.Seq] = nothing
	}
	if want := map[uint64]bool{1: true, 2: true, 3: true, 4: true, 9: false}; !maps.Equal(filled, want) {
		t.Errorf("%v, not %v", filled, want)
	}
	if err := p.Err(); err != nil || errors.Is(p.ctx.Err(), context.Canceled) {
		t.Errorf("the broker fails: %v", err)
	}
}
