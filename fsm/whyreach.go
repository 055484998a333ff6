package fsm

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// reach is where tasks of a shape could run some day: per site the greatest of its machines' offers, for each
// kind of task.
type reach struct {
	bySite map[string]*spot
	spots  []*spot
	most   [2]command.Resources
}

// spot is one site's part of a reach: [1] is for machines that run images, [0] for those that run commands.
type spot struct {
	site *site
	most [2]command.Resources
	// marked is the same by labels, for shapes with selectors.
	marked []marked
}

// marked are a site's machines with equal labels.
type marked struct {
	labels *labelSet
	most   [2]command.Resources
}

func kindOf(image bool) int {
	if image {
		return 1
	}
	return 0
}

func (s *views) reachOf(h *command.Shape) reach {
	r := reach{bySite: map[string]*spot{}}
	for _, x := range s.order {
		if x.state != Alive || !h.Allows(x.name) {
			continue
		}
		p := &spot{site: x}
		at := map[*labelSet]int{} // in p.marked
		for _, m := range x.machines {
			if !m.takes(h, m.whole) {
				continue
			}
			i, ok := at[m.labels]
			if !ok {
				i, at[m.labels] = len(p.marked), len(p.marked)
				p.marked = append(p.marked, marked{labels: m.labels})
			}
			for _, image := range [...]bool{false, true} {
				if m.runs.Takes(image) {
					k := kindOf(image)
					for _, most := range [...]*command.Resources{&p.marked[i].most[k], &p.most[k], &r.most[k]} {
						*most = most.Greater(m.whole)
					}
				}
			}
		}
		if len(p.marked) > 0 {
			r.bySite[x.name], r.spots = p, append(r.spots, p)
		}
	}
	return r
}

// meets reports whether tasks of another shape could compete for a machine here.
func (r *reach) meets(h *command.Shape) bool {
	if !h.Need.FitsIn(r.most[kindOf(h.Image)]) {
		return false
	}
	if len(h.Only) > 0 {
		return slices.ContainsFunc(h.Only, func(name string) bool {
			p := r.bySite[name]
			return p != nil && p.meets(h)
		})
	}
	return slices.ContainsFunc(r.spots, func(p *spot) bool { return p.meets(h) })
}

func (p *spot) meets(h *command.Shape) bool {
	k := kindOf(h.Image)
	if !h.Need.FitsIn(p.most[k]) || !h.Allows(p.site.name) {
		return false
	}
	return len(h.Rules) == 0 || slices.ContainsFunc(p.marked, func(m marked) bool {
		return h.Need.FitsIn(m.most[k]) && h.Admits(m.labels.list())
	})
}
