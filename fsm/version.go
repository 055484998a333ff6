package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/sched"
)

// Version is the newest apply version this code knows: what a batch does to a
// state never changes within a version (architecture D2). Code that would change
// it asks State.version and keeps the old way beside the new one. Version 2 allows
// the policies by projected waits; version 3 selectors, labels and slots; by version 4
// virtual queues know of a site what it lends only; by version 5 a cancel says where it
// was asked, and a site why it lends nothing.
const Version = 5

// selectVersion is the one from which on jobs may have selectors, and machines
// labels and slots.
const selectVersion = 3

// onceVersion is the one from which on tasks that fail, or come back with their site,
// and are cancelled in the same entry leave nothing in the virtual queues. Version 2
// has them there still, as all its members do.
const onceVersion = 3

// lentVersion is the one from which on the policies by projected waits take no site's
// word for what its own users do: only cores that it lends count as its own, and home
// runs are none of their concern.
const lentVersion = 4

// toldVersion is the one from which on a Cancel says at which site it was asked, and
// sites say by Close why they lend nothing.
const toldVersion = 5

// firstVersion is the one that every federation begins with, whatever its
// founder knows: a genesis means the same to all.
const firstVersion = 1

// Version is the apply version in force, 0 before genesis.
func (s *State) Version() uint32 { return s.version }

// NextVersion is the newest apply version that the brokers of all sites know
// which have not left: a Raise to it is accepted. A lost site counts, for it may
// come back with the broker that it had. It is never below Version.
func (s *State) NextVersion() uint32 {
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
func (s *State) raise(c *Raise) Result {
	if c.Version > s.NextVersion() {
		return Result{Code: VersionTooNew}
	}
	s.raised = max(s.raised, c.Version)
	return Result{}
}

// premature reports whether a command holds what a member need not know yet: it is
// refused, as that member would refuse it or could not even read it.
func (s *State) premature(b Body) bool { return s.version < Version && s.version < needed(b) }

// needed is the apply version that allows a command, 0 if all do.
func needed(b Body) uint32 {
	policy := ""
	switch c := b.(type) {
	case *Genesis:
		policy = c.Params.Policy
	case *SetParams:
		policy = c.Params.Policy
	default:
		switch k := b.Kind(); {
		case k >= KindCancelAt:
			return toldVersion
		case k >= KindSelect:
			return selectVersion
		}
	}
	if sched.IsProjected(policy) {
		return projectedVersion
	}
	return 0
}

// Selects reports whether jobs may have selectors, and machines labels and slots.
func (s *State) Selects() bool { return s.version >= selectVersion }

// Tells reports whether a Cancel may say where it was asked, and a site by Close why it
// lends nothing.
func (s *State) Tells() bool { return s.version >= toldVersion }

// CanSelect is Selects, or ErrSelectVersion with what to do.
func (s *State) CanSelect() error {
	if s.Selects() {
		return nil
	}
	return fmt.Errorf("%w: they need apply version %d and the federation goes by %d, which its leader raises once every site's broker knows the newer: upgrade them",
		ErrSelectVersion, selectVersion, s.version)
}

// checkVersion refuses to apply anything by rules that this code does not know.
func (s *State) checkVersion() error {
	if s.version > Version {
		return tooNew(s.version)
	}
	return nil
}

// tooNew says what to do about a version that this code does not know.
func tooNew(v uint32) error {
	return fmt.Errorf("%w: the federation goes by version %d, this broker knows %d: upgrade this broker", ErrNewVersion, v, Version)
}
