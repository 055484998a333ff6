package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/unseal"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/node/seal"
)

// AskKeys asks the broker of a site at its peer address for the keys of attempts of its jobs; the state here is as of
// entry index.
type AskKeys func(ctx context.Context, site, addr string, index uint64, refs []command.AttemptRef) (
	[]seal.Answer, error)

const (
	// askTime bounds one question: what is assigned waits for it, and keeps its machine.
	askTime = 3 * time.Second
	// A site gets keysAtOnce keys at once, and keysPerSecond from then on.
	keysAtOnce    = 8192
	keysPerSecond = 4096
)

// keyKeeper asks other sites' brokers for keys, and gives them this site's.
type keyKeeper struct {
	*process
	sealer  *seal.Sealer
	replica *replica.Replica
	askKeys AskKeys

	mu    sync.Mutex
	given map[string]*rate.Limiter // of keys, by site
}

// ask asks an owner, and gives the core what it says.
func (k *keyKeeper) ask(a core.KeyAsk) {
	ctx, cancel := context.WithTimeout(k.ctx, askTime)
	defer cancel()
	ev := core.KeysEvent{Owner: a.Owner}
	answers, err := k.askOwner(ctx, a)
	if ev.Answers = answers; err != nil {
		ev.Failed = err.Error()
		k.log.Debug().Err(err).Str("owner", a.Owner).Int("attempts", len(a.Attempts)).Msg("no keys of sealed commands")
	}
	k.post(ev)
}

var errNoPeer = errors.New("it has registered no peer address")

func (k *keyKeeper) askOwner(ctx context.Context, a core.KeyAsk) ([]seal.Answer, error) {
	addr := k.replica.PeerAddress(a.Owner)
	switch {
	case k.askKeys == nil:
		return nil, errors.New("this broker has no way to other sites' brokers")
	case addr == "":
		return nil, errNoPeer
	}
	answers, err := k.askKeys(ctx, a.Owner, addr, a.Index, a.Attempts)
	if err != nil && ctx.Err() != nil && k.ctx.Err() == nil {
		return nil, fmt.Errorf("its broker has not answered within %s", askTime)
	}
	return answers, err
}

// Keys answers another site's broker, whose state is as of entry index: for each attempt its key, if by this broker's
// own state that is assigned to the site. It waits until its state is as new, for as long as ctx lasts.
func (k *keyKeeper) Keys(ctx context.Context, from string, index uint64, refs []command.AttemptRef) []seal.Answer {
	answers := make([]seal.Answer, len(refs))
	refuse := func(why seal.Refusal) []seal.Answer {
		for i := range answers {
			answers[i] = seal.Answer{Refusal: why}
		}
		return answers
	}
	if !k.allows(from, len(refs), time.Now()) {
		return refuse(seal.TooMany)
	}
	if k.replica.Index() < index && k.replica.Await(ctx, func(s *fsm.State) bool { return s.Index() >= index }) != nil {
		return refuse(seal.Behind)
	}
	for i, ref := range refs {
		k.replica.View(func(s *fsm.State) { answers[i] = unseal.Answer(k.sealer, from, ref, s) })
	}
	return answers
}

// allows reports whether a site may have n more keys now.
func (k *keyKeeper) allows(site string, n int, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.given[site]
	if g == nil {
		if k.given == nil {
			k.given = map[string]*rate.Limiter{}
		}
		g = rate.NewLimiter(keysPerSecond, keysAtOnce)
		k.given[site] = g
	}
	return g.AllowN(now, n)
}
