package membership

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// keys are those of gossip: one to send with, and some more to read. A new key is read at once, sent with when the
// others have had time to learn it, and as long again the former one is read.
//
//	set(new) ──▶ next: read ── delay, or nobody there ──▶ send ── delay ──▶ former: forgotten
type keys struct {
	ring  *memberlist.Keyring
	delay time.Duration
	now   func() time.Time

	mu                 sync.Mutex
	former, send, next []byte // nil: none; send always is
	since              time.Time
	newest             uint64 // generation of next, or else of send. Invariant: only grows.
}

func newKeys(first []byte, generation uint64, delay time.Duration, now func() time.Time) (*keys, error) {
	first = bytes.Clone(first)
	ring, err := memberlist.NewKeyring(nil, first)
	if err != nil {
		return nil, fmt.Errorf("%w: key: %w", ErrConfig, err)
	}
	return &keys{ring: ring, delay: delay, now: now, send: first, newest: generation}, nil
}

// set has a key follow the present one, if it is of a later generation, and reports whether it is. It replaces one
// that is not sent with yet: so three are read at most.
func (k *keys) set(generation uint64, key []byte) (news bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation <= k.newest {
		return false, nil
	}
	k.newest = generation
	k.next, k.since = bytes.Clone(key), k.now()
	return true, k.install()
}

// advance takes the next step if it is time. If nobody is there, nobody would misunderstand the new key.
func (k *keys) advance(alone bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	over := k.now().Sub(k.since) >= k.delay
	switch {
	case k.next != nil && (over || alone):
		k.former, k.send, k.next = k.send, k.next, nil
		k.since = k.now()
	case k.next == nil && k.former != nil && over:
		k.former = nil
	default:
		return nil
	}
	return k.install()
}

// install has memberlist use the keys. It takes only the last one off the ring, and puts back what should stay:
// memberlist's RemoveKey writes into what its readers hold, unless the key is the last. REQUIRES: k.mu held.
func (k *keys) install() error {
	var errs []error
	want := slices.DeleteFunc([][]byte{k.send, k.next, k.former}, func(b []byte) bool { return b == nil })
	add := func() {
		for _, key := range want {
			errs = append(errs, k.ring.AddKey(key))
		}
	}
	add()
	errs = append(errs, k.ring.UseKey(k.send)) // it stands first now
	have := k.ring.GetKeys()
	stale := slices.IndexFunc(have, func(b []byte) bool {
		return !slices.ContainsFunc(want, func(w []byte) bool { return bytes.Equal(b, w) })
	})
	if stale > 0 {
		for _, key := range slices.Backward(have[stale:]) {
			errs = append(errs, k.ring.RemoveKey(key))
		}
		add()
	}
	return errors.Join(errs...)
}

// SetKey has gossip use another key than Config.Key: it is read at once, and sent with when the others have had time
// to learn it; some time later the former one is forgotten. Whoever has only that one takes no part any more. A key
// that is of no later generation than the newest one changes nothing. It does not block, and fails with ErrConfig.
func (g *Gossip) SetKey(generation uint64, key []byte) error {
	if len(key) != KeyBytes {
		return fmt.Errorf("%w: key has %d bytes, not %d", ErrConfig, len(key), KeyBytes)
	}
	news, err := g.keys.set(generation, key)
	if news {
		select {
		case g.rejoinNow <- struct{}{}: // whom we did not understand, we may now
		default:
		}
	}
	return err
}

// advanceKeys takes the next step of a change of keys, if it is time.
func (g *Gossip) advanceKeys() {
	if err := g.keys.advance(g.table.alone()); err != nil {
		g.limit.warn(&g.log, "keys").Err(err).Msg("gossip: the next key is not in use: restart the broker")
	}
}
