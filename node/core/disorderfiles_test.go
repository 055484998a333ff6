package core

import (
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/inputs"
)

// staging lists the attempts whose files a site fetches, in a fixed order.
func (s *rigSite) staging() []executor.ID {
	return slices.SortedFunc(maps.Keys(s.files.staging), func(a, b executor.ID) int {
		return strings.Compare(a.String(), b.String())
	})
}

// fetch has the files of an attempt be here, or not come.
func (d *disorder) fetch(t *rapid.T) {
	s := d.site(t)
	ids := s.staging()
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "attempt")
	faults := []inputs.Fault{inputs.Away, inputs.Refused, inputs.NoRoom, inputs.Unfit}
	if f := rapid.IntRange(-4, len(faults)-1).Draw(t, "fault"); f >= 0 {
		s.missing(id, faults[f], "no files")
	} else {
		s.here(id)
	}
}

// deliver has an owner's broker say that it has outputs of its tasks, more than once perhaps.
func (d *disorder) deliver(t *rapid.T) { d.deliverAt(d.site(t)) }

func (d *disorder) deliverAt(s *rigSite) {
	var got []command.Delivered
	for _, x := range d.state.Deliveries(s.name) {
		got = append(got, command.Delivered{AttemptRef: x.AttemptRef})
	}
	if len(got) > 0 {
		s.turn(AskEvent(func(c *Core) { c.out.Add(&command.Deliver{Attempts: got}, nil) }))
	}
}
