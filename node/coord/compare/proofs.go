package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/wholefile"
)

// A member keeps at most maxProofs files, and of one site maxProofsOf of each sort: the oldest, for they are nearest to
// where it began, and so that none can have another's pushed out.
const (
	maxProofs   = 64
	maxProofsOf = 2
)

// proof is a file of evidence.
type proof struct {
	sort, site string
	path       string
	content    []byte
}

// keepProof writes what was signed into a file, if there is room. If the disk does not take it, it is tried again with
// each round: nobody would sign it a second time.
func (c *Checker) keepProof(sort, site string, entry uint64, list []Statement) {
	if c.cfg.Proofs == "" || c.cfg.Identity == nil || !command.ValidSite(site) { // its name is a file's
		return
	}
	path := filepath.Join(c.cfg.Proofs, fmt.Sprintf("%s-%s-%d.json", sort, site, entry))
	content, err := c.evidence(list).seal(c.cfg.Identity)
	if err != nil {
		c.cfg.Log.Error().Err(err).Str("file", path).Msg("evidence could not be kept")
		return
	}
	p := proof{sort, site, path, content}
	err = c.writeProof(p)
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unwritten) < maxProofs {
		c.unwritten = append(c.unwritten, p)
	}
	c.cfg.Log.Error().Err(err).Str("file", path).
		Msg("evidence could not be written, and stands in memory only: free the disk; it is tried again until a restart")
}

// writeProof writes a file of evidence, if there is room for one more.
func (c *Checker) writeProof(p proof) error {
	room, err := c.roomFor(p.sort, p.site)
	if err == nil && !room {
		c.cfg.Log.Info().Str("file", p.path).Msg("evidence not kept: there are enough files of it")
		return nil
	}
	if err == nil {
		err = wholefile.Replace(p.path, p.content, 0o600)
	}
	if err == nil {
		c.cfg.Log.Info().Str("file", p.path).Msg("evidence kept: anybody can check it with `cloudshare audit check FILE`")
	}
	return err
}

// writeAgain writes what the disk did not take before.
func (c *Checker) writeAgain() {
	c.mu.Lock()
	again := c.unwritten
	c.unwritten = nil
	c.mu.Unlock()
	again = slices.DeleteFunc(again, func(p proof) bool { return c.writeProof(p) == nil })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwritten = append(again, c.unwritten...)
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
