package fsm

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// ErrOrders reports a site whose entry does not count where it stands.
var ErrOrders = errors.New("it may not order this entry")

// MaxTermStep bounds how far the term of an entry is above the one before. Each new leader takes the next one, and
// those whom somebody deposes at once order nothing, many times a second: that takes days to come to this bound. And
// whoever may raise the term has 2⁴⁴ entries to order before there are none left.
const MaxTermStep = 1 << 20

// MayOrder returns the key by which a site signs the next entry, if that is of a term in which the site may order it:
// for logs that keep entries where others than the leader can write (ZooKeeper). The zero key is returned where there
// is no roster: nobody signs. Errors: ErrOrders.
func (s *fleet) MayOrder(site string, term uint64) (key signature.Key, err error) {
	m, known := s.roster.Member(site)
	switch {
	case !s.roster.Founded():
		return key, nil
	case !known || m.Banned || !m.Elector:
		return key, fmt.Errorf("%w: %s is no elector", ErrOrders, command.Clip(site))
	case term < s.term:
		return key, fmt.Errorf("%w: term %d is over, entry %d is of term %d", ErrOrders, term, s.index, s.term)
	case term > s.term && term-s.term > MaxTermStep:
		return key, fmt.Errorf("%w: term %d is more than %d above %d", ErrOrders, term, MaxTermStep, s.term)
	case term == s.term && s.leader != "" && s.leader != site:
		return key, fmt.Errorf("%w: %s leads term %d, not %s", ErrOrders, s.leader, term, site)
	}
	return m.Key, nil
}

// Orderers returns the keys of the sites that may order entries, by site: the electors, here or not. nil: there is no
// roster, and everybody may.
func (s *fleet) Orderers() map[string]signature.Key {
	if !s.roster.Founded() {
		return nil
	}
	keys := map[string]signature.Key{}
	for _, m := range s.roster.Contents().Members {
		if m.Elector && !m.Banned {
			keys[m.Site] = m.Key
		}
	}
	return keys
}
