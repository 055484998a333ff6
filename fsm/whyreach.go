package fsm

import "slices"

// reach is where tasks of a shape could run on some day: per site the greatest
// of its machines' offers, per kind of task.
type reach struct {
	bySite map[string]*spot
	spots  []*spot
	most   [2]Resources
}

// spot is one site's part: [1] of machines that run images, [0] of those that
// run commands.
type spot struct {
	site *site
	most [2]Resources
}

func kindOf(image bool) int {
	if image {
		return 1
	}
	return 0
}

func (s *State) reachOf(h *shape) reach {
	r := reach{bySite: map[string]*spot{}}
	for _, x := range s.order {
		if x.state != Alive || !h.allows(x.name) {
			continue
		}
		var p *spot
		for _, m := range x.machines {
			if !m.offered || !h.fits(m, m.whole) {
				continue
			}
			if p == nil {
				p = &spot{site: x}
				r.bySite[x.name], r.spots = p, append(r.spots, p)
			}
			for _, image := range [...]bool{false, true} {
				if m.runs.Takes(image) {
					k := kindOf(image)
					p.most[k] = p.most[k].greater(m.whole)
					r.most[k] = r.most[k].greater(m.whole)
				}
			}
		}
	}
	return r
}

// meets reports whether tasks of another shape could want a machine here.
func (r *reach) meets(h *shape) bool {
	k := kindOf(h.image)
	if !h.need.fits(r.most[k]) {
		return false
	}
	if len(h.only) > 0 {
		return slices.ContainsFunc(h.only, func(name string) bool {
			p := r.bySite[name]
			return p != nil && h.need.fits(p.most[k]) && h.allows(name)
		})
	}
	return slices.ContainsFunc(r.spots, func(p *spot) bool { return h.need.fits(p.most[k]) && h.allows(p.site.name) })
}
