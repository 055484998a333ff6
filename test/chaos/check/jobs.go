package check

import "slices"

// Acknowledged judges what clients were told: every order was taken once, under
// one id, and refused by nobody.
func Acknowledged(orders []Ordered) []Violation {
	var out []Violation
	owner := map[string]string{} // of ids
	for _, o := range orders {
		ids := slices.Compact(slices.Sorted(slices.Values(o.IDs)))
		switch {
		case o.Refused != "":
			out = append(out, broken(NoError, "%s asked %s and got: %s", o.Name, o.Owner, o.Refused))
		case len(ids) == 0:
			out = append(out, broken(Progress, "%s was never acknowledged by %s", o.Name, o.Owner))
		case len(ids) > 1:
			out = append(out, broken(OneJob, "%s got %d ids for one key: %v", o.Name, len(ids), ids))
		}
		for _, id := range ids {
			if other, taken := owner[id]; taken {
				out = append(out, broken(OneJob, "%s is the id of both %s and %s", id, other, o.Name))
			}
			owner[id] = o.Name
		}
	}
	return out
}

// Known judges the jobs that the brokers know, home runs included: every
// acknowledged one is there, no name stands for two, nobody invented one.
func Known(orders []Ordered, shown []Shown) []Violation {
	var out []Violation
	byName := map[string][]string{}
	for _, s := range shown {
		if !slices.Contains(byName[s.Name], s.ID) {
			byName[s.Name] = append(byName[s.Name], s.ID)
		}
	}
	for _, o := range orders {
		ids := byName[o.Name]
		if len(ids) > 1 {
			out = append(out, broken(OneJob, "%s became %d jobs: %v", o.Name, len(ids), ids))
		}
		for _, id := range o.IDs {
			if !slices.Contains(ids, id) {
				out = append(out, broken(OneEnd, "%s was acknowledged by %s as %s, which nobody knows", o.Name, o.Owner, id))
				break
			}
		}
		delete(byName, o.Name)
	}
	for name, ids := range byName {
		out = append(out, broken(OneJob, "nobody submitted %v (%q)", ids, name))
	}
	return out
}

// Strangers judges marks of jobs that no broker knows.
func Strangers(shown []Shown, m Marks) []Violation {
	var out []Violation
	for _, job := range m.Jobs() {
		if !slices.ContainsFunc(shown, func(s Shown) bool { return s.ID == job }) {
			out = append(out, broken(OneEnd, "%s ran, but no broker knows it", job))
		}
	}
	return out
}

// Steady remembers ends and tells when one changes.
type Steady struct{ ends map[string]string }

// See takes a look at a job at a broker.
func (s *Steady) See(site, id, state string) []Violation {
	if !isEnd(state) {
		return nil // a broker may be behind another
	}
	if s.ends == nil {
		s.ends = map[string]string{}
	}
	if was := s.ends[id]; was != "" && was != state {
		return []Violation{broken(OneEnd, "%s ended as %s, and as %s at %s", id, was, state, site)}
	}
	s.ends[id] = state
	return nil
}
