package fsm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// unknownSites returns the names in sites.only that no site of the federation has, in order. That is not an
// error: a site with that name may join later.
func (s *fleet) unknownSites(h *command.Shape) (names []string) {
	for _, name := range h.Only {
		if s.byName[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// unknownSitesText says which names in sites.only are unknown, "" if there are none.
func (s *fleet) unknownSitesText(h *command.Shape) string {
	names := s.unknownSites(h)
	if len(names) == 0 {
		return ""
	}
	text := "sites.only names " + joined(names) + ", which no site of the federation is called"
	if near := s.nearSite(names[0]); near != "" {
		text += fmt.Sprintf(": is %s meant?", near)
	}
	return text
}

// nearLooks bounds the sites that a name is compared with: names that begin alike are neighbours.
const nearLooks = 32

// nearSite returns the known site with the most similar name, "" if none is similar.
func (s *fleet) nearSite(name string) (near string) {
	at, _ := slices.BinarySearchFunc(s.order, name, func(x *site, n string) int {
		return strings.Compare(x.name, n)
	})
	least := max(1, len(name)/3) + 1
	for _, x := range s.order[max(0, at-nearLooks/2):min(len(s.order), at+nearLooks/2)] {
		if x.state == Left {
			continue
		}
		if d := EditDistance(name, x.name); d < least {
			near, least = x.name, d
		}
	}
	return near
}

// EditDistance returns Levenshtein's distance: how many bytes must be changed, added or removed to make one
// text of another.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
