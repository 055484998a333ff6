package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Version is the newest apply version this code knows: what a batch does to a
// state never changes within a version (architecture D2). Code that would change
// it asks State.version and keeps the old way beside the new one; a command that only
// a newer version has is refused as OutOfRange until that is in force.
const Version = 1

// Version is the apply version in force, 0 before genesis.
func (s *views) Version() uint32 { return s.version }

// NextVersion is the newest apply version that the brokers of all sites know
// which have not left: a Raise to it is accepted. A lost site counts, for it may
// come back with the broker that it had. It is never below Version.
func (s *views) NextVersion() uint32 {
	var next uint32
	for _, x := range s.sites {
		if x.state != Left && (next == 0 || x.maxVersion < next) {
			next = x.maxVersion
		}
	}
	return max(next, s.version)
}

// raise executes a Raise: from the next entry on the version is in force, if all
// know it. The entry itself goes on by the old one, so a broker that does not
// know the new one has this entry right, and stops at the next.
func (s *State) raise(c *command.Raise) command.Result {
	if c.Version > max(s.version, s.raised) && c.Version > s.nextVersion() {
		return command.Result{Code: command.VersionTooNew}
	}
	s.raised = max(s.raised, c.Version)
	return command.Result{}
}

// nextVersion is NextVersion, remembered: who raises again and again has all sites looked
// at once.
func (s *State) nextVersion() uint32 {
	if s.next == 0 {
		s.next = s.NextVersion()
	}
	return s.next
}

// checkVersion refuses to apply anything by rules that this code does not know.
func (s *fleet) checkVersion() error {
	if s.version > s.bounds.version {
		return s.bounds.tooNew(s.version)
	}
	return nil
}

// tooNew says what to do about a version that this code does not know.
func (b *bounds) tooNew(v uint32) error {
	return fmt.Errorf("%w: the federation goes by version %d, this broker knows %d: upgrade this broker", ErrNewVersion, v, b.version)
}
