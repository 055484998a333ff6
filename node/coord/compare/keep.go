package compare

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/wholefile"
)

// A member keeps at most maxProofs files, and of one site maxProofsOf of each sort: the oldest, for they are nearest to
// where it began, and so that none can have another's pushed out.
const (
	maxProofs   = 64
	maxProofsOf = 2
)

// keepDifference keeps what was signed of the entry at which a site was found to differ, by all who were asked.
func (c *Checker) keepDifference(members []Member, site string, said map[string][]Statement) {
	c.mu.Lock()
	d, differs := c.differ[site]
	c.mu.Unlock()
	if c.cfg.Identity == nil || !differs {
		return
	}
	own := ofEntry(d.Entry, c.statements()) // of now: what was said before may have had no hash yet
	if len(own) == 0 {
		return
	}
	var list []Statement
	for _, m := range members {
		list = append(list, ofEntry(d.Entry, said[m.Site])...)
	}
	c.keepProof("differs", site, d.Entry, append(list[:min(len(list), maxHeard)], own...))
}

// ofEntry returns the statements of one entry.
func ofEntry(entry uint64, list []Statement) (of []Statement) {
	for _, s := range list {
		if s.Entry == entry {
			of = append(of, s)
		}
	}
	return of
}

// keepProof writes what was signed into a file, if there is room.
func (c *Checker) keepProof(sort, site string, entry uint64, list []Statement) {
	if c.cfg.Proofs == "" || c.cfg.Identity == nil || !command.ValidSite(site) { // its name is a file's
		return
	}
	path := filepath.Join(c.cfg.Proofs, fmt.Sprintf("%s-%s-%d.json", sort, site, entry))
	room, err := c.roomFor(sort, site)
	if err == nil && !room {
		c.cfg.Log.Info().Str("file", path).Msg("evidence not kept: there are enough files of it")
		return
	}
	var b []byte
	if err == nil {
		b, err = c.evidence(list).seal(c.cfg.Identity)
	}
	if err == nil {
		err = wholefile.Replace(path, b, 0o600)
	}
	if err != nil {
		c.cfg.Log.Error().Err(err).Str("file", path).Msg("evidence could not be kept")
		return
	}
	c.cfg.Log.Info().Str("file", path).Msg("evidence kept: anybody can check it with `cloudshare audit check FILE`")
}

// roomFor reports whether one file more is kept; it makes the folder.
func (c *Checker) roomFor(sort, site string) (bool, error) {
	if err := os.MkdirAll(c.cfg.Proofs, 0o700); err != nil {
		return false, err
	}
	files, err := os.ReadDir(c.cfg.Proofs)
	if err != nil {
		return false, err
	}
	same := 0
	for _, f := range files {
		name, isProof := strings.CutSuffix(f.Name(), ".json")
		if at := strings.LastIndexByte(name, '-'); isProof && at >= 0 && name[:at] == sort+"-"+site {
			same++
		}
	}
	return same < maxProofsOf && len(files) < maxProofs, nil
}

// evidence puts together what a third party needs.
func (c *Checker) evidence(list []Statement) *Evidence {
	g, roster := &c.cfg.Group, c.cfg.Identity.Roster()
	e := &Evidence{
		Format: 1, Federation: hex.EncodeToString(g.Federation[:]), Lineage: hex.EncodeToString(g.Lineage[:]),
		Reporter: c.cfg.Site, At: time.Now().UTC().Truncate(time.Second),
	}
	sites, voter := []string{c.cfg.Site}, map[string]bool{}
	for i := range list {
		key, _ := roster.Key(list[i].Site)
		e.Statements = append(e.Statements, list[i].shown(key))
		sites = append(sites, list[i].Site) // it may have left the group since
	}
	for _, m := range c.cfg.Members() {
		sites, voter[m.Site] = append(sites, m.Site), m.Voter
	}
	seen := map[string]bool{}
	for _, site := range sites {
		if key, known := roster.Key(site); known && !seen[site] && len(e.Members) < maxListed {
			seen[site] = true
			e.Members = append(e.Members, ListedKey{site, key, roster.Find(key).Elector, voter[site]})
		}
	}
	slices.SortFunc(e.Members, func(a, b ListedKey) int { return strings.Compare(a.Site, b.Site) })
	return e
}
