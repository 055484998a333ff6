package relay

import (
	"context"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord"
)

// budget bounds what connections make this member hold: all of them together, those
// of one site, and each one. Whoever asks for more waits. A lone holder gets what it
// asks for, so that nothing waits forever.
type budget struct {
	total, perSite, perConn int
	// assured is what a site may hold though others hold the total, up to half as much
	// again for all: some sites that fill it keep nobody out.
	assured int

	mu    sync.Mutex
	held  int            // Invariant: the sum of sites.
	sites map[string]int // Invariant: no zeros.
	freed coord.Broadcast
}

func newBudget(total, perSite, perConn int) *budget {
	return &budget{total: total, perSite: perSite, perConn: perConn, sites: map[string]int{}}
}

// share is what one connection holds of a budget.
type share struct {
	of   *budget
	site string
	held int // guarded by of.mu
}

// acquire waits until n more fit; false: ctx ended before.
func (s *share) acquire(ctx context.Context, n int) bool {
	for ctx.Err() == nil {
		freed := s.of.freed.Wait()
		if s.try(n) {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
	return false
}

func (s *share) try(n int) bool {
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	site := b.sites[s.site]
	if !fits(s.held, n, b.perConn) || !fits(site, n, b.perSite) {
		return false
	}
	if !fits(b.held, n, b.total) && (site+n > b.assured || b.held+n > b.total+b.total/2) {
		return false
	}
	s.add(n)
	return true
}

func fits(held, n, limit int) bool { return held == 0 || held+n <= limit }

// REQUIRES: s.of.mu held.
func (s *share) add(n int) {
	s.held += n
	s.of.held += n
	if s.of.sites[s.site] += n; s.of.sites[s.site] == 0 {
		delete(s.of.sites, s.site)
	}
}

// release gives n back.
func (s *share) release(n int) {
	if n == 0 {
		return
	}
	s.of.mu.Lock()
	s.add(-n)
	s.of.mu.Unlock()
	s.of.freed.Fire()
}

// budgets of the leader's end of all forward connections. Bytes are memory, not
// payload: see frameCost.
type budgets struct {
	reading *budget // bytes of frames that have not arrived whole
	calls   *budget // bytes of frames whose calls have no outcome yet
	asked   *budget // questions without an answer
	// decoding holds a token for each large frame that is being checked: decoded
	// commands take several times their bytes.
	decoding chan struct{}
}

func newBudgets() budgets {
	calls := newBudget(128<<20, 4*MaxFrame, 2*MaxFrame)
	calls.assured = 256 << 10
	return budgets{
		reading:  newBudget(64<<20, 2*MaxFrame, MaxFrame),
		calls:    calls,
		asked:    newBudget(8192, 512, 256),
		decoding: make(chan struct{}, 4),
	}
}
