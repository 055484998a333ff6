package mem

import (
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Signer signs parts for a purpose with a site's key.
type Signer func(purpose string, parts ...[]byte) []byte

// signing is how members sign. The zero value: they do not.
type signing struct {
	federation [16]byte
	by         map[string]Signer
}

// Sign has a site sign what it proposes from now on, for a federation with a roster. Without it, as in simulations,
// nothing is signed.
func (g *Group) Sign(site string, federation [16]byte, by Signer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.signing.by == nil {
		g.signing.by = map[string]Signer{}
	}
	g.signing.federation, g.signing.by[site] = federation, by
}

// introduction returns the command by which a new leader introduces itself, none if it signs nothing.
func (s *signing) introduction(lead string, term uint64) [][]byte {
	if s.by[lead] == nil {
		return nil
	}
	c := command.Command{ID: command.ID{Site: lead}, Body: &command.Lead{Term: term}}
	return [][]byte{command.Append(nil, c)}
}

// bundle returns commands of a site, signed, if it signs.
func (s *signing) bundle(to []command.Bundle, site string, cmds [][]byte) []command.Bundle {
	sign := s.by[site]
	if sign == nil || len(cmds) == 0 {
		return to
	}
	var all []byte
	for _, c := range cmds {
		all = append(all, c...)
	}
	return append(to, command.Bundle{Site: site, Commands: len(cmds), Signature: command.Sign(s.federation, all, sign)})
}
