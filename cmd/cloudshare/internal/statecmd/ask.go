package statecmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/replica"
)

// A federation that is moved must not run. Its brokers are asked by HTTPS or HTTP whether they live, for which nobody
// needs a token: that is the same on every backend. Who does not answer is taken for stopped.

const (
	askWait = 3 * time.Second // for each
	askMost = 64              // at a time
)

// answer is what a site's broker says of itself.
type answer struct {
	site, addr string
	index      uint64 // entry that it has applied
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
		if later := command.EpochOf(a.index); later > epoch {
			return fmt.Errorf("%w: the federation goes on in epoch %d, %s answers at %s: start this broker there, too", errRefusedMove, later, a.site, a.addr)
		}
	}
	return nil
}

// askSites returns those that answer as brokers of the state's sites.
func askSites(ctx context.Context, replica *replica.Replica) (out []answer) {
	var sites []fsm.SiteView
	replica.View(func(s *fsm.State) { sites = s.Sites() })
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
			l, err := askAlive(ctx, s.HTTP)
			if err == nil && l.site == s.ID {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, answer{s.ID, s.HTTP, l.index})
			}
		})
	}
	wg.Wait()
	return out
}

// life is what an API says of its broker.
type life struct {
	site  string
	index uint64 // entry that it has applied; 0 while it waits to join
}

var errNoBroker = errors.New("no broker answers")

// askAlive asks an API whether its broker lives. Addresses do not say whether it speaks HTTPS, and who is asked in the
// wrong way may wait for more than it gets: both are tried at once.
func askAlive(ctx context.Context, addr string) (life, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	schemes := []string{"https://", "http://"}
	lives := make(chan life, len(schemes))
	for _, scheme := range schemes {
		go func() { lives <- askBy(ctx, scheme+addr) }()
	}
	for range schemes {
		if l := <-lives; l.site != "" {
			return l, nil
		}
	}
	return life{}, errNoBroker
}

// alive asks without a look at certificates: question and answer are no secrets, and this machine need not trust the
// authority of each site. Who could lie here could as well close the port.
var alive = &http.Client{Transport: &http.Transport{
	Proxy:             http.ProxyFromEnvironment,
	TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // see above
	DisableKeepAlives: true,
}}

func askBy(ctx context.Context, base string) (l life) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/livez", nil)
	if err != nil {
		return life{}
	}
	res, err := alive.Do(req)
	if err != nil {
		return life{}
	}
	_ = res.Body.Close()
	l.site = res.Header.Get(wire.HeaderSite)
	l.index, _ = strconv.ParseUint(res.Header.Get(wire.HeaderIndex), 10, 64)
	return l
}
