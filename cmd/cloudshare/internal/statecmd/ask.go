package statecmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/replica"
)

// A federation that is moved must not run. Its brokers are asked by HTTP, as any
// user would: that is the same on every backend. Who does not answer is taken for
// stopped.

const (
	askWait = 3 * time.Second // for each
	askMost = 64              // at a time
)

// answer is what a site's broker says of itself.
type answer struct {
	site, addr string
	status     wire.Status
}

// nobodyRuns asks all sites of a state.
func nobodyRuns(ctx context.Context, replica *replica.Replica) error {
	for _, a := range askSites(ctx, replica) {
		return fmt.Errorf("%w: %s answers at %s: stop all brokers first", coord.ErrRunning, a.site, a.addr)
	}
	return nil
}

// nobodyAhead asks all sites of a state whether they have gone on in a later epoch.
func nobodyAhead(ctx context.Context, replica *replica.Replica) error {
	var epoch uint64
	replica.View(func(s *fsm.State) { epoch = s.Epoch() })
	for _, a := range askSites(ctx, replica) {
		if later := command.EpochOf(a.status.Index); later > epoch {
			return fmt.Errorf("%w: the federation goes on in epoch %d, %s answers at %s: start this broker there, too", errRefusedMove, later, a.site, a.addr)
		}
	}
	return nil
}

// askSites returns those that answer as brokers of the state's federation, or as
// brokers that do not say of which.
func askSites(ctx context.Context, replica *replica.Replica) (out []answer) {
	var sites []fsm.SiteView
	var federation string
	replica.View(func(s *fsm.State) { sites, federation = s.Sites(), uuid.UUID(s.Federation()).String() })
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, askMost)
	for _, s := range sites {
		if s.HTTP == "" {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			status, err := askStatus(ctx, s.HTTP)
			var problem *client.Problem
			// without a quorum a broker does not know
			ours := status.Federation == federation || status.Federation == uuid.Nil.String()
			if err == nil && ours || errors.As(err, &problem) {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, answer{s.ID, s.HTTP, status})
			}
		})
	}
	wg.Wait()
	return out
}

func askStatus(ctx context.Context, addr string) (wire.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	c, err := client.New(addr)
	if err != nil {
		return wire.Status{}, err
	}
	return c.Status(ctx, false)
}
