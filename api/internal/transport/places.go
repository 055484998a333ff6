package transport

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// Whose names whom a request counts for, "" = nobody: it is bounded together with all others only.
type Whose func(ctx context.Context) string

// Places are for requests that stay for long. There are fewer of them than
// connections, so that some always remain for short requests; and nobody has more than half of them, so that some
// remain for others.
type Places struct {
	most        int
	name, title string // of the problem
	what        string // in the plural
	whose       Whose

	mu    sync.Mutex
	taken int            // guarded by mu. Invariant: at most most
	of    map[string]int // by whom; guarded by mu. Invariant: no zeros
}

// NewPlaces makes so many places for what; beyond them a client gets a problem of this
// name and title.
func NewPlaces(most int, name, title, what string, whose Whose) *Places {
	return &Places{most: most, name: name, title: title, what: what, whose: whose, of: map[string]int{}}
}

// Taken returns how many are.
func (p *Places) Taken() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.taken)
}

// share is how many one may have.
func (p *Places) share() int { return (p.most + 1) / 2 }

// Enter takes a place for a request until leave; beyond the bound the request is refused, and
// its connection ended. Beyond the share of who asks it is refused alone.
func (p *Places) Enter(ctx context.Context) (leave func(), err error) {
	who := p.whose(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.most:
		return nil, problem.Crowded(p.name, p.title,
			"this broker keeps "+strconv.Itoa(p.most)+" "+p.what+" at a time: try again later, or ask another broker")
	case who != "" && p.of[who] >= p.share():
		refused := problem.New(http.StatusTooManyRequests, p.name, p.title,
			"one user, or site, may have "+strconv.Itoa(p.share())+" "+p.what+" at a time: end some")
		refused.RetryAfter = 10
		return nil, refused
	}
	p.add(who, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(who, -1)
	}, nil
}

// add counts places. REQUIRES: p.mu held.
func (p *Places) add(who string, n int) {
	p.taken += n
	if who == "" {
		return
	}
	if p.of[who] += n; p.of[who] == 0 {
		delete(p.of, who)
	}
}
