package mem

import (
	"bytes"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// signing is how members sign. The zero value: they do not.
type signing struct {
	federation [16]byte
	by         map[string]command.Signer
}

// Sign has a site sign what it proposes from now on, for a federation with a roster. Without it, as in simulations,
// nothing is signed.
func (g *Group) Sign(site string, federation [16]byte, by command.Signer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.signing.by == nil {
		g.signing.by = map[string]command.Signer{}
	}
	g.signing.federation, g.signing.by[site] = federation, by
}

// introduction returns the command by which a new leader introduces itself, none if it signs nothing.
func (s *signing) introduction(lead string, term uint64) [][]byte {
	if s.by[lead] == nil {
		return nil
	}
	return [][]byte{command.EncodeLead(lead, term)}
}

// bundle returns commands of a site, signed, if it signs.
func (s *signing) bundle(to []command.Bundle, site string, cmds [][]byte) []command.Bundle {
	sign := s.by[site]
	if sign == nil || len(cmds) == 0 {
		return to
	}
	return append(to, command.SignBundle(s.federation, site, len(cmds), bytes.Join(cmds, nil), sign))
}
