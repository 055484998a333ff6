package replica

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
)

var (
	_ coord.Ordering  = (*Replica)(nil)
	_ coord.Expecting = (*Replica)(nil)
)

// MayOrder implements coord.Ordering.
func (r *Replica) MayOrder(site string, term uint64) (key signature.Key, err error) {
	r.View(func(s *fsm.State) { key, err = s.MayOrder(site, term) })
	return key, err
}

// Term implements coord.Ordering.
func (r *Replica) Term() (term uint64) {
	r.View(func(s *fsm.State) { term = s.Term() })
	return term
}

// Orderers implements coord.Ordering.
func (r *Replica) Orderers() (keys map[string]signature.Key) {
	r.View(func(s *fsm.State) { keys = s.Orderers() })
	return keys
}
