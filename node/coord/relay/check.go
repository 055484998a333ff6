package relay

import (
	"math"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// traits are what the commands of a call are together.
type traits struct {
	reports bool   // all of them
	since   uint32 // the first apply version that has them
}

// checkCommands checks commands before they enter the log, where every member would refuse one that cannot be decoded:
// who proposed it is told early. What only the leader says is no member's to say, be it a former leader's.
func (s *session) checkCommands(it *item) (ok bool, are traits) {
	are = traits{reports: true, since: command.FirstVersion}
	for _, b := range it.cmds {
		c, rest, err := command.Decode(b)
		if err != nil || len(rest) > 0 || c.ID.Site != s.site || c.Body.Kind().OfLeader() ||
			c.Body.Kind() == command.KindRecover {
			return false, traits{}
		}
		are.reports = are.reports && isReport(c.Body.Kind())
		are.since = max(are.since, command.Since(c.Body))
	}
	return true, are
}

// version is the apply version in force, as far as this member has applied the log.
func (s *session) version() (v uint32) {
	v = math.MaxUint32
	s.c.cfg.Backend.With(func(m coord.Machine) {
		if by, knows := m.(coord.Versioned); knows {
			v = by.Version()
		}
	})
	return v
}
