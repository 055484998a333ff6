package zk

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// Who has the ensemble's password can write any znode. So each says who wrote it, with a signature, and one that no
// elector has signed for its place is treated as if it were not there: an entry waits for the leader's own, a snapshot
// for the next one, and nobody leads by a record. Members without keys, as in tests, believe the tree.

// errUncounted reports an entry that does not count where it stands: for those who read the log it is not there.
var errUncounted = errors.New("no leader has signed it for its place")

// isUncounted reports whether an entry is one only by its name.
func isUncounted(err error) bool {
	return errors.Is(err, errUncounted) || errors.Is(err, tree.ErrEntry)
}

// judge says whether an entry counts behind the last one applied. That follows from the state and the entry's bytes,
// so all members find the same. REQUIRES: m.mu held.
func (m *machine) judge(n uint64, e *tree.Entry) error {
	o, orders := m.m.(coord.Ordering)
	if !orders {
		return nil
	}
	term, unread := command.DecodeTerm(e.Batch)
	switch key, err := o.MayOrder(e.Site, term); {
	case err == nil && key == (signature.Key{}):
		return nil
	case unread != nil:
		return fmt.Errorf("%w: %w", errUncounted, unread)
	case err != nil:
		return fmt.Errorf("%w: %w", errUncounted, err)
	case !e.IsBy(m.line, n, key):
		return fmt.Errorf("%w: the signature of %s is wrong", errUncounted, command.Clip(e.Site))
	}
	return nil
}

// orderers are the keys of those who may write into the tree, as the state has them; nil: it decides nothing.
func (l *Log) orderers() map[string]signature.Key {
	if o, orders := l.cfg.Machine.(coord.Ordering); orders {
		return o.Orderers()
	}
	return nil
}

// isBy reports whether a site may write into the tree beside the log, and signed what stands there. As long as the
// state says nothing of that, as before its first snapshot, the roster of the last start does.
func (l *Log) isBy(site string, signed func(signature.Key) bool) bool {
	keys := l.orderers()
	switch {
	case keys != nil:
		key, may := keys[site]
		return may && signed(key)
	case l.who == nil:
		return true
	}
	key, known := l.who.Roster().Key(site)
	may := l.who.Roster().Find(key)
	return known && may.Elector && !may.Banned && signed(signature.Key(key))
}

// hasOwnKey reports whether this member signs with the key that the federation has of it: else nothing counts that it
// orders.
func (l *Log) hasOwnKey() bool {
	key, may := l.orderers()[l.cfg.Site]
	return l.who == nil || !may || key == signature.Key(l.who.Public())
}

// sign returns by whom and with what this member signs; nil where members have no keys.
func (l *Log) sign() command.Signer {
	if l.who == nil {
		return nil
	}
	return l.who.Sign
}

// signEntry makes an entry this member's.
func (l *Log) signEntry(n uint64, e *tree.Entry) {
	if by := l.sign(); by != nil {
		e.Sign(l.line, n, l.cfg.Site, signature.Key(l.who.Public()), by)
	}
}

// signLead makes what stands in /lead this member's.
func (l *Log) signLead(r *tree.LeadRecord) {
	if by := l.sign(); by != nil {
		r.Sign(l.line, l.cfg.Site, by)
	}
}

// signSnapshot makes a snapshot this member's.
func (l *Log) signSnapshot(p *tree.Pointer) {
	if by := l.sign(); by != nil {
		p.Sign(l.line, l.cfg.Site, by)
	}
}

// readLead reads what stands in /lead: of a record that no elector has signed, or of a term that no leader has yet,
// nothing counts, and somebody takes the leadership.
func (l *Log) readLead(data []byte) (now tree.LeadRecord) {
	term, bounded := l.stateTerm()
	if err := tree.Parse(l.c.root+tree.LeadPath, data, &now); err != nil {
		return tree.LeadRecord{}
	}
	first := now.By == "" && now.Site == "" && now.Moved == "" // nobody has led this tree yet
	signed := first || l.isBy(now.By, func(k signature.Key) bool { return now.IsBy(l.line, k) })
	if !signed || now.Site != "" && l.who != nil && now.By != now.Site || bounded && now.Term > term+maxTermAhead {
		return tree.LeadRecord{}
	}
	return now
}

// maxTermAhead bounds how far the term in /lead is believed to be above that of the last entry: terms in which nothing
// was ordered. It is less than what an entry may skip (fsm.MaxTermStep), so that the next leader's still counts.
const maxTermAhead = 1 << 19

// stateTerm returns the term of the last entry applied, if the state knows.
func (l *Log) stateTerm() (term uint64, known bool) {
	o, orders := l.cfg.Machine.(coord.Ordering)
	if !orders || o.Orderers() == nil {
		return 0, false
	}
	return o.Term(), true
}
