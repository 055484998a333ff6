package roster

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Rekey replaces a site's key, its recovery key, or both. The same one again is OK.
func (r *Roster) Rekey(c *command.Rekey, federation [16]byte, at Moment) command.Code {
	i, ok := r.sites[c.Site]
	switch {
	case !r.spend():
		return command.Busy
	case !ok:
		return command.UnknownSite
	}
	m := *r.members[i]
	if m.Generation == c.Generation+1 && m.Key == c.Key && m.Recovery == c.Recovery {
		return command.OK // it was a repeat
	}
	if code := r.rekeyable(&m, c); code != command.OK {
		return code
	}
	if !r.check(2) {
		return command.Busy
	}
	by := m.Key
	if c.ByRecovery {
		by = m.Recovery
	}
	signed := c.Signed(federation)
	if !by.Verify(c.By[:], command.SignedKey, signed...) ||
		c.Key != m.Key && !c.Key.Verify(c.ByNew[:], command.SignedKey, signed...) {
		return command.BadSignature
	}
	if c.ByRecovery && c.Key != m.Key {
		r.exposeGossip() // whoever has the former key may have been told it
	}
	m.Key, m.Recovery, m.Generation = c.Key, c.Recovery, m.Generation+1
	r.replace(i, m, at)
	return command.OK
}

// rekeyable says why a key cannot be replaced, by what is known without the signatures.
func (r *Roster) rekeyable(m *Member, c *command.Rekey) command.Code {
	none := signature.Key{}
	_, used := r.keys[c.Key]
	switch {
	case m.Banned:
		return command.Banned
	case m.Generation != c.Generation || m.Generation >= command.MaxKeys:
		return command.OldKey
	case used && c.Key != m.Key:
		return command.KeyTaken
	case c.ByRecovery && (m.Recovery == none || c.Recovery == none):
		return command.NoRecovery
	case !c.ByRecovery && m.Recovery != none && c.Recovery != m.Recovery:
		return command.RecoveryStands
	case c.Key == m.Key && c.Recovery == m.Recovery:
		return command.AlreadySo
	}
	return command.OK
}
