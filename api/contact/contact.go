// Package contact finds out whether sites reach each other's APIs at the peer addresses
// that they have registered, where brokers ask each other, by asking there. Nobody else would notice a wrong one
// before somebody asks for a job or its logs (steps 1 and 7 of a job's way). It
// imports the wire forms only.
//
// A question says who asks, and its answer says whether the asked site reaches that
// one: so a site whose own address is wrong learns it by its own questions.
package contact

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
)

const (
	// atOnce bounds the sites asked in one round, and so what a site that joins or moves costs: each pair of
	// sites shakes hands. With hundreds of sites that must not take the time of what keeps leases.
	atOnce = 8
	// askLimit bounds one question, and an answer after lateAfter shows a network or brokers that are busy.
	askLimit  = 3 * time.Second
	lateAfter = askLimit / 3
	// sayAgain is the time between two log lines about the same.
	sayAgain = 10 * time.Minute
)

// Site is one site of the federation, as it has registered.
type Site struct {
	ID, Peer    string
	Incarnation uint64
}

// Config of a Checker; all but Dial and the last two fields are required.
type Config struct {
	Site       string // this broker's own
	Federation string
	// Sites returns the sites that are present now.
	Sites  func() []Site
	Logger zerolog.Logger
	// Dial connects to a site's broker at its peer address, and fails if another one answers there; nil: nobody is
	// asked.
	Dial func(ctx context.Context, site, addr string) (net.Conn, error)

	// Patience is how long a site that is present may be silent: it may just have
	// ended. Round is the time between two looks.
	Patience, Round time.Duration
}

// Checker asks other sites in turn. All methods may be called from any goroutine.
type Checker struct {
	cfg    Config
	client *http.Client

	mu    sync.Mutex
	most  int                // sites asked in one round now. Invariant: 1 to atOnce.
	own   Site               // as this site has registered, as of the last round
	known map[string]*record // Invariant: of sites that were present at the last round only.
}

// record is what is known of one site.
type record struct {
	site    Site
	reached bool
	at      time.Time     // when it was reached last
	why     string        // "" = reached, or not known
	silent  time.Time     // since when it is not reached; zero = it is
	due     time.Time     // the next question
	pause   time.Duration // until the one after it, while it is not all well
	you     *wire.Contact // what the site says of us
	said    time.Time     // that it is not reached, in the log
	saidUs  time.Time     // that it does not reach us, in the log
}

// New returns a Checker that has not begun.
func New(cfg Config) *Checker {
	if cfg.Round == 0 {
		cfg.Round = 2 * time.Second
	}
	return &Checker{cfg: cfg, client: newClient(cfg.Dial), most: atOnce, known: map[string]*record{}}
}

// Run asks until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	defer c.client.CloseIdleConnections()
	tick := time.NewTicker(c.cfg.Round)
	defer tick.Stop()
	for {
		c.round(ctx, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// round asks the sites whose turn it is, the longest waiting first.
func (c *Checker) round(ctx context.Context, now time.Time) {
	var wg sync.WaitGroup
	var late atomic.Bool
	list := c.dueSites(now)
	for _, s := range list {
		wg.Go(func() {
			asked := time.Now()
			you, err := c.askSite(ctx, s)
			if time.Since(asked) > lateAfter {
				late.Store(true)
			}
			if ctx.Err() == nil {
				c.learn(s, you, err, time.Now())
			}
		})
	}
	wg.Wait()
	c.pace(len(list), late.Load())
}

// pace has fewer sites asked at once while answers are late: who has no time to answer has less by each handshake, and
// questions that end unanswered are asked again. When some fifty sites joined at once on too few processors, questions
// took a quarter of all, leases ran out, and each registration that followed had all sites asked again.
func (c *Checker) pace(asked int, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case late:
		c.most = max(1, c.most/2)
	case asked > 0:
		c.most = min(atOnce, c.most+1)
	}
}

// dueSites forgets the sites that have gone, and returns some of those that are due.
func (c *Checker) dueSites(now time.Time) (list []Site) {
	present := map[string]Site{}
	for _, s := range c.cfg.Sites() {
		if s.Peer != "" && c.cfg.Dial != nil {
			present[s.ID] = s
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registered(present[c.cfg.Site], now)
	delete(present, c.cfg.Site)
	for id, r := range c.known {
		switch s, here := present[id]; {
		case here && r.reached && s.Peer == r.site.Peer: // a lease that ran out, or a restart, moves nobody
			r.site = s
		case !here || s != r.site:
			delete(c.known, id)
		}
	}
	var due []*record
	for id, s := range present {
		if c.known[id] == nil {
			c.known[id] = &record{site: s, due: now}
		}
		if r := c.known[id]; !now.Before(r.due) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int { return a.due.Compare(b.due) })
	for _, r := range due[:min(c.most, len(due))] {
		list = append(list, r.site)
	}
	return list
}

// registered asks sites again when this site has registered again: all of them if it has moved, since what they said
// was of its former address, else those that do not reach it. REQUIRES: c.mu held.
func (c *Checker) registered(own Site, now time.Time) {
	if own == c.own {
		return
	}
	moved := own.Peer != c.own.Peer
	c.own = own
	for _, r := range c.known {
		if !moved && r.you != nil && r.you.Reached {
			continue
		}
		r.you, r.due, r.pause, r.saidUs = nil, now, 0, time.Time{}
	}
}

const (
	// firstPause and lastPause are between questions while something is wrong or not
	// known; allWell is the time else.
	firstPause = 2 * time.Second
	lastPause  = 30 * time.Second
	allWell    = 10 * time.Minute
	// ownTurn is how long a site that is reached, but does not know yet whether it reaches this one, is left to find
	// out: its own question tells (DialedBy). To ask it each few seconds until then had pairs shake hands three times.
	ownTurn = 15 * time.Second
)

// learn records a site's answer, or err as the reason why there is none.
func (c *Checker) learn(s Site, you *wire.Contact, err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.known[s.ID]
	if r == nil || r.site != s {
		return
	}
	r.pause = min(max(firstPause, 2*r.pause), lastPause)
	if err != nil {
		c.silent(r, err, now)
	} else {
		c.reached(r, you, now)
	}
	r.due = now.Add(r.pause)
}

// silent records a failed call. REQUIRES: c.mu held.
func (c *Checker) silent(r *record, err error, now time.Time) {
	if r.silent.IsZero() {
		r.silent = now
	}
	if now.Sub(r.silent) < c.cfg.Patience {
		r.pause = min(r.pause, firstPause)
		return
	}
	r.reached, r.why = false, err.Error()
	if now.Sub(r.said) >= sayAgain {
		r.said = now
		c.cfg.Logger.Warn().Str("to", r.site.ID).Str("peer", r.site.Peer).Str("reason", r.why+Remedy(r.site.ID)).
			Msg("a site's API is not reached: questions here about its jobs and logs fail")
	}
}

// reached records a successful call. REQUIRES: c.mu held.
func (c *Checker) reached(r *record, you *wire.Contact, now time.Time) {
	if r.why != "" {
		c.cfg.Logger.Info().Str("to", r.site.ID).Str("peer", r.site.Peer).Msg("a site's API is reached again")
	}
	if you != nil && you.Address != c.own.Peer { // it has not heard of the latest address yet
		you = nil
	}
	if you == nil && r.you != nil && r.you.Reached { // it has dialed meanwhile
		you = r.you
	}
	r.reached, r.at, r.why, r.silent, r.said, r.you = true, now, "", time.Time{}, time.Time{}, you
	switch {
	case you == nil: // it is about to find out
		r.pause = max(r.pause, ownTurn)
	case you.Reached:
		r.pause, r.saidUs = allWell, time.Time{}
	case now.Sub(r.saidUs) >= sayAgain:
		r.saidUs = now
		c.cfg.Logger.Warn().Str("by", r.site.ID).Str("peer", you.Address).Str("reason", you.Why).
			Msg("another site does not reach this broker's API: its users' questions about jobs and logs here fail")
	}
}

// DialedBy implements api.Contacts: a site that dials this one where it has registered reaches it, so its word on that
// need not be asked for. Nothing is known of an address of before, or by a site that is new here: that one is asked.
func (c *Checker) DialedBy(site, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.known[site]
	if r == nil || addr == "" || addr != c.own.Peer {
		return
	}
	r.you, r.saidUs = &wire.Contact{Reached: true, Address: addr}, time.Time{}
	if r.reached {
		r.pause, r.due = allWell, r.at.Add(allWell)
	}
}

// Of implements api.Contacts.
func (c *Checker) Of(site string) *wire.Contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.known[site]
	switch {
	case r == nil || !r.reached && r.why == "":
		return nil
	case r.reached:
		return &wire.Contact{Reached: true, Address: r.site.Peer}
	}
	return &wire.Contact{Address: r.site.Peer, Why: r.why + Remedy(site)}
}

// Unreached implements api.Contacts.
func (c *Checker) Unreached() (list []wire.Unreached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.known {
		if r.you != nil && !r.you.Reached {
			list = append(list, wire.Unreached{By: id, Address: r.you.Address, Why: r.you.Why})
		}
	}
	slices.SortFunc(list, func(a, b wire.Unreached) int { return strings.Compare(a.By, b.By) })
	return list
}

// Introduce implements api.Contacts.
func (c *Checker) Introduce(from string) wire.Introduction {
	return wire.Introduction{Site: c.cfg.Site, Federation: c.cfg.Federation, You: c.Of(from)}
}

// Remedy follows why a site's API is not reached.
func Remedy(site string) string {
	return fmt.Sprintf(": correct `advertise` or `peer` of %s and restart it, or open the port", site)
}
