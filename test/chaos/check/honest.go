package check

import "slices"

// Honesty tells who keeps to the protocol. A promise holds between those that do: what a hostile site is told, shows,
// runs or owns is nobody's word. Its zero value has all be honest.
type Honesty struct{ Hostile string }

// Is reports whether a site keeps to the protocol.
func (h Honesty) Is(site string) bool { return site != h.Hostile || site == "" }

// Ordered returns what was asked of honest sites.
func (h Honesty) Ordered(all []Ordered) []Ordered {
	return slices.DeleteFunc(slices.Clone(all), func(o Ordered) bool { return !h.Is(o.Owner) })
}

// Marks returns those of attempts at honest sites, of their own jobs and those of other honest ones; owner tells whose
// a job is.
func (h Honesty) Marks(all Marks, owner func(job string) string) Marks {
	out := Marks{tasks: map[task][]Attempt{}, first: all.first}
	for t, list := range all.tasks {
		kept := slices.DeleteFunc(slices.Clone(list), func(a Attempt) bool { return !h.Is(a.Site) })
		if h.Is(owner(t.job)) && len(kept) > 0 {
			out.tasks[t] = kept
		}
	}
	return out
}

// Ledger returns what was used of honest sites by honest ones.
func (h Honesty) Ledger(l Ledger) Ledger {
	hostile := func(c Cell) bool { return !h.Is(c.Owner) || !h.Is(c.Executor) }
	l.Matrix = slices.DeleteFunc(slices.Clone(l.Matrix), hostile)
	return l
}
