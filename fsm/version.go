package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Version is the newest apply version that this code knows: what a batch does to a state never changes
// within a version (architecture D2). Code that would change it checks State.version and keeps the old
// behaviour beside the new one. A command that only a newer version has is refused as OutOfRange until that
// version is in force.
//
//	1  what a federation begins with
//	2  Orphans
//	3  Ahead, HandBack: tasks ahead
//	4  gated jobs: Release; Prioritize
//	5  a Release that holds tasks of a job that is not gated makes it so
const Version = 5

// Version returns the apply version in force, 0 before genesis.
func (s *clock) Version() uint32 { return s.version }

// NextVersion returns the newest apply version that the brokers of all sites know which have not left: a
// Raise to it is accepted. A lost site counts, since it may return with the broker that it had. The result
// is never below Version.
func (s *fleet) NextVersion() uint32 {
	var next uint32
	for _, x := range s.sites {
		if x.state != Left && (next == 0 || x.maxVersion < next) {
			next = x.maxVersion
		}
	}
	return max(next, s.version)
}

// raise executes a Raise: the version is in force from the next entry on, if all know it. The entry itself
// follows the old version, so a broker that does not know the new one applies this entry correctly and stops
// at the next.
func (s *State) raise(c *command.Raise) command.Result {
	if c.Version > max(s.version, s.raised) && c.Version > s.nextVersion() {
		return command.Result{Code: command.VersionTooNew}
	}
	s.raised = max(s.raised, c.Version)
	return command.Result{}
}

// nextVersion is NextVersion, remembered, so that repeated Raises look at all sites only once.
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

// tooNew returns an error that says what to do about a version that this code does not know.
func (b *bounds) tooNew(v uint32) error {
	return fmt.Errorf("%w: the federation goes by version %d, this broker knows %d: upgrade this broker",
		ErrNewVersion, v, b.version)
}
