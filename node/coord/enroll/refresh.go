package enroll

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
)

// ErrNoAgreement reports that too few electors tell the same newer roster.
var ErrNoAgreement = errors.New("too few electors agree on who the members are")

// Refresh asks members who the members are now, for one that was away while that changed: whoever leads may have a key
// that it does not know. It returns the newest roster that more than half of those who decided when it knew tell alike:
// none of them is believed alone. The roster that it has is returned if there is no newer one. relay.ErrBanned,
// relay.ErrUnknownKey:
// they do not talk to this site.
func (a *Asking) Refresh(ctx context.Context, now truststore.Roster, members []relay.Peer) (truststore.Roster, error) {
	var mu sync.Mutex
	var told []truststore.Roster
	var refused error
	var wg sync.WaitGroup
	electors := 0
	for _, m := range now.Members {
		if !m.Deciding || m.Site == a.Dialer.Site {
			continue
		}
		electors++
		at := slices.IndexFunc(members, func(p relay.Peer) bool { return p.Site == m.Site })
		if at < 0 {
			continue
		}
		wg.Go(func() {
			got, r, err := a.ask(ctx, members[at], now.Federation, nil)
			if err == nil && got.Verdict == Refused { // strangers are greeted here, and told nothing
				err = fmt.Errorf("%s refuses: %w: %s", m.Site, relay.ErrUnknownKey, line(got.Why))
			}
			if err == nil && got.Verdict == Admitted && r.Federation == now.Federation {
				mu.Lock()
				told = append(told, r)
				mu.Unlock()
			}
			if errors.Is(err, relay.ErrBanned) || errors.Is(err, relay.ErrUnknownKey) {
				mu.Lock()
				refused = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if refused != nil && len(told) == 0 {
		return now, refused
	}
	return agreed(now, told, electors)
}

// Roster asks one member who the members are. Only an operator decides to believe it alone, as where a federation is
// followed that was recovered.
func (a *Asking) Roster(ctx context.Context, to relay.Peer, federation [16]byte) (truststore.Roster, error) {
	got, r, err := a.ask(ctx, to, federation, nil)
	switch {
	case err != nil:
		return r, err
	case got.Verdict != Admitted:
		return r, fmt.Errorf("%w: %s", ErrRefused, line(got.Why))
	case r.Federation != federation:
		return r, fmt.Errorf("%w: it is of another federation", ErrRefused)
	}
	return r, nil
}

// agreed returns the newest of the rosters that more than half of so many electors tell alike.
func agreed(now truststore.Roster, told []truststore.Roster, electors int) (truststore.Roster, error) {
	newest := now
	for _, r := range told {
		alike := 0
		for _, other := range told {
			if reflect.DeepEqual(r, other) {
				alike++
			}
		}
		if 2*alike > electors && r.Index > newest.Index {
			newest = r
		}
	}
	if newest.Index == now.Index && 2*len(told) <= electors {
		return now, fmt.Errorf("%w: %d of %d answer", ErrNoAgreement, len(told), electors)
	}
	return newest, nil
}
