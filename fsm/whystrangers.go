package fsm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// strangers are the names in sites.only that no site of the federation has, in order.
// That is no error: a site of that name may join later.
func (s *views) strangers(h *command.Shape) (names []string) {
	for _, name := range h.Only {
		if s.byName[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// strangersText says of which names in sites.only nothing is known, "" if there are none.
func (s *views) strangersText(h *command.Shape) string {
	names := s.strangers(h)
	if len(names) == 0 {
		return ""
	}
	text := "sites.only names " + joined(names) + ", which no site of the federation is called"
	if near := s.nearSite(names[0]); near != "" {
		text += fmt.Sprintf(": is %s meant?", near)
	}
	return text
}

// nearLooks bounds the sites that a name is compared with: what begins alike stands
// together.
const nearLooks = 32

// nearSite returns the known site whose name is nearest to another one, "" if none is near.
func (s *views) nearSite(name string) (near string) {
	at, _ := slices.BinarySearchFunc(s.order, name, func(x *site, n string) int { return strings.Compare(x.name, n) })
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

// EditDistance is Levenshtein's: how many bytes must be changed, added or left out to make
// one text of another.
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
