package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// unfit returns, in one line, why no present site could run such tasks, even with all its machines empty.
func (s *views) unfit(h *command.Shape) string {
	which := "no present site"
	if len(h.Only)+len(h.Not) > 0 {
		which = "no present site allowed by its sites.only and sites.not"
	}
	allowed, offered := false, false
	var taking []alike
	at := map[*labelSet]int{} // in taking
	for _, x := range s.order {
		if !x.present() || !h.Allows(x.name) {
			continue
		}
		allowed = true
		for _, m := range x.machines {
			offered = true
			if !m.runs.Takes(h.Image) {
				continue
			}
			i, ok := at[m.labels]
			if !ok {
				i, at[m.labels] = len(taking), len(taking)
				taking = append(taking, alike{first: m})
			}
			taking[i].n++
		}
	}
	switch {
	case !allowed:
		why := "no present site is allowed by its sites.only and sites.not"
		if text := s.unknownSitesText(h); text != "" {
			why += "; " + text
		}
		return why
	case offered && len(taking) == 0 && h.Image:
		return which + " runs container images"
	case offered && len(taking) == 0:
		return which + " runs commands without a container image"
	case offered && !slices.ContainsFunc(taking, func(a alike) bool { return h.Admits(a.first.labels.list()) }):
		return unlabelled(h, taking)
	}
	need := h.Need.String()
	if len(h.Selectors) > 0 {
		need += " and " + joined(wishes(h))
	}
	if h.Image {
		return fmt.Sprintf("%s runs container images on a machine with %s", which, need)
	}
	return fmt.Sprintf("%s exposes a machine with %s", which, need)
}

// alike are machines with equal labels. Labels are compared once for all of them: a list of jobs does so for
// each of its requirements, and Apply waits meanwhile.
type alike struct {
	first *machine // by site and name
	n     int
}

// unlabelled says which selector is satisfied by none of some machines, and what they have instead; or, if each
// selector is satisfied by some machine, how near the nearest machine comes.
func unlabelled(h *command.Shape, machines []alike) string {
	whose := "no machine of the federation"
	if len(h.Only)+len(h.Not) > 0 {
		whose = "no machine of the sites allowed by its sites.only and sites.not"
	}
	if h.Image {
		whose += " that runs container images"
	}
	for i := range h.Rules {
		r := &h.Rules[i]
		if r.Key == command.NetworkLabel {
			if !admitted(r, machines) {
				return "its job needs a network, which " + sitesOf(machines) + " to others' tasks (sandbox.network)"
			}
			continue
		}
		if wish := command.FilesWish(r.Key); wish != "" {
			if !admitted(r, machines) {
				return "its job needs " + wish + ", which " + sitesOf(machines) + " (data.lend_max, or no files travel there)"
			}
			continue
		}
		if has, met := census(r, machines); !met {
			return fmt.Sprintf("%s %s%s", whose, wanted(r), has)
		}
	}
	near := slices.MinFunc(machines, func(a, b alike) int {
		return h.Unmet(a.first.labels.list()) - h.Unmet(b.first.labels.list())
	}).first
	return fmt.Sprintf("%s has all of %s; nearest: %s/%s lacks %s", whose, joined(wishes(h)),
		near.site.name, near.name, joined(h.Lacking(near.labels.list())))
}

// admitted reports whether a selector is satisfied by one of some machines.
func admitted(r *command.Selector, machines []alike) bool {
	return slices.ContainsFunc(machines, func(a alike) bool { return r.Admits(a.first.labels.list()) })
}

// sitesOf names the sites of some machines, which do not give something.
func sitesOf(machines []alike) string {
	var names []string
	for _, m := range machines {
		if name := m.first.site.name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return "site " + names[0] + " does not give"
	}
	return "sites " + joined(names) + " do not give"
}

// wishes are the selectors of a requirement for people to read.
func wishes(h *command.Shape) []string {
	list := slices.Clone(h.Selectors)
	for i, text := range list {
		switch {
		case command.IsNetworkSelector(text):
			list[i] = "a network"
		case command.IsFilesSelector(text):
			list[i] = command.FilesWish(text)
		}
	}
	return list
}

// maxCensus bounds the values that a reason lists.
const maxCensus = 3

// census says what machines have of a selector's label, for a text that says that none satisfies it. met is
// true if one does satisfy it.
func census(r *command.Selector, machines []alike) (has string, met bool) {
	counts := map[string]int{}
	for _, m := range machines {
		value, ok := m.first.labels.list().Get(r.Key)
		if r.Accepts(value, ok) {
			return "", true
		}
		if ok {
			counts[value] += m.n
		}
	}
	values := make([]string, 0, len(counts))
	for v := range counts {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var parts []string
	for i, v := range values {
		switch {
		case i == maxCensus:
			parts = append(parts, fmt.Sprintf("%d other values", len(values)-i))
		case i > maxCensus:
		case counts[v] == 1:
			parts = append(parts, fmt.Sprintf("1 machine has %s=%s", r.Key, v))
		default:
			parts = append(parts, fmt.Sprintf("%d machines have %s=%s", counts[v], r.Key, v))
		}
	}
	switch {
	case len(parts) > 0:
		return "; nearest: " + strings.Join(parts, ", "), false
	case len(r.Values) > 0:
		return "; none has a label " + r.Key, false
	}
	return "", false // the text already says that
}

// wanted says that a machine has what a selector requires.
func wanted(r *command.Selector) string {
	switch {
	case r.Not || len(r.Values) > 1:
		return "satisfies " + r.String()
	case len(r.Values) == 0:
		return "has a label " + r.Key
	}
	return "has " + r.String()
}

// joined lists the first few of many names in one line.
func joined(list []string) string {
	if n := len(list); n > maxCensus {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxCensus], ", "), n-maxCensus)
	}
	return strings.Join(list, ", ")
}
