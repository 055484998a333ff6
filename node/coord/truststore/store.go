package truststore

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Entry is one member.
type Entry struct {
	Site    string          `json:"site"`
	Key     identity.Public `json:"key"`
	Elector bool            `json:"elector,omitempty"`
	Banned  bool            `json:"banned,omitempty"`
	Motion  uint64          `json:"motion,omitempty"` // by which it was expelled, if that is kept
	// Deciding is set for an elector whose vote counted: it was here. Only those are asked who the members are now.
	Deciding bool `json:"deciding,omitempty"`
}

// Roster is what the federation had decided by an entry of its log.
type Roster struct {
	Federation [16]byte // zero: not known yet
	Index      uint64   // entry that changed it last; a greater one is newer
	Members    []Entry
}

// Store answers who is who. Its methods may be called from any goroutine.
type Store struct {
	path   string
	denied map[string]bool
	now    atomic.Pointer[view]

	mu      sync.Mutex // held while the roster is replaced
	changed []func()
	unsaved func(error)
	behind  *time.Timer // has a roster written that only grew; nil: none waits. Guarded by mu.

	file    sync.Mutex // held while the file is written; may be taken with mu held
	written *view      // what the file holds. Guarded by file.
}

// saveWait is how long a roster that only grew waits for further members before it is written.
const saveWait = time.Second

// view is a Roster, indexed. It never changes.
type view struct {
	Roster

	keys  map[identity.Public]relay.Standing
	sites map[string]identity.Public
}

// Open returns a store that keeps its roster in a file. Sites that are denied count as expelled, whatever the
// federation has decided.
func Open(path string, denied []string) (*Store, error) {
	s := &Store{path: path, denied: map[string]bool{}}
	for _, site := range denied {
		s.denied[site] = true
	}
	r, err := load(path)
	if err != nil {
		return nil, err
	}
	s.written = s.index(r)
	s.now.Store(s.written)
	return s, nil
}

// index makes a roster's maps.
func (s *Store) index(r Roster) *view {
	v := &view{
		Roster: r, keys: make(map[identity.Public]relay.Standing, len(r.Members)),
		sites: make(map[string]identity.Public, len(r.Members)),
	}
	for _, m := range r.Members {
		v.sites[m.Site] = m.Key
		v.keys[m.Key] = relay.Standing{
			Site: m.Site, Elector: m.Elector, Banned: m.Banned || s.denied[m.Site], Motion: m.Motion,
		}
	}
	return v
}

// Roster returns what is known. Its Members must not be changed.
func (s *Store) Roster() Roster { return s.now.Load().Roster }

// Find implements relay.Roster.
func (s *Store) Find(key identity.Public) relay.Standing { return s.now.Load().keys[key] }

// Key implements relay.Roster.
func (s *Store) Key(site string) (identity.Public, bool) {
	key, ok := s.now.Load().sites[site]
	return key, ok
}

// OnChange has a function called after each change, on the goroutine that makes it.
func (s *Store) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, f)
}

// Update puts a newer roster in force, and has it written. An older one, or the same again, changes nothing. It is in
// force even if it cannot be written: the error says so. One that has the same members, or more, none of them an
// elector, is written a second later, with those who come meanwhile: the function of OnUnsaved is told if that fails,
// and a crash before it loses nothing that the log does not say again. All else, an expulsion above all, is written
// before Update returns.
func (s *Store) Update(r Roster) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now.Load()
	switch {
	case now.Federation != [16]byte{} && r.Federation != now.Federation:
		return fmt.Errorf("%w: %s is of federation %x, not %x", ErrForeign, s.path, now.Federation, r.Federation)
	case r.Index < now.Index:
		return nil
	case r.Index == now.Index && r.Federation == now.Federation && slices.Equal(r.Members, now.Members):
		return nil
	}
	s.now.Store(s.index(r))
	if now.grewTo(r) {
		s.saveLater()
	} else {
		err = s.save()
	}
	for _, f := range s.changed {
		f()
	}
	return err
}

// Reset puts a roster in force in place of whatever was known, as one does who founds a federation or was admitted to
// one. Unlike Update it always writes it, and fails if it cannot be written.
func (s *Store) Reset(r Roster) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.replace(s.index(r)); err != nil {
		return err
	}
	for _, f := range s.changed {
		f()
	}
	return nil
}
