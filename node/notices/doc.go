// Package notices tells the URLs that jobs of this site name that the jobs have ended (step 7 of a job's way): from the
// owner's journal, by the owner's broker alone, at least once, and for a bounded time. It imports journal and
// vocabulary, and nothing of the broker, which says what has ended.
//
//	book, err := notices.Open(...)      // reads the journal
//	errs := book.Admit(reqs)            // which submissions may name the URLs that they do
//	book.Keep(num, hooks)               // the core has recorded them
//	s := notices.New(cfg, book); s.Run(ctx)
//	s.End(list)                         // jobs have ended: what is to be sent is durable when it returns
package notices

import (
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/outward"
)

// Config of what is sent; zero bounds take the defaults.
type Config struct {
	// Hosts may be told: HOST, HOST:PORT, or *.DOMAIN for the names below one. None: jobs that name a URL are refused.
	Hosts []string
	// Private lets hosts have addresses that only this machine or its network reaches.
	Private bool
	// Secret is what the keys of users are made of. Invariant: with Hosts it has at least MinSecret bytes.
	Secret []byte
	// GiveUp is how long after a job's end its notices are tried; 0: 24 h.
	GiveUp time.Duration
	// Within is how long an attempt may take; 0: 10 s.
	Within time.Duration
	// First is the pause behind the first attempt that fails, and the last one doubles up to Most; 0: 5 s and 1 h.
	First, Most time.Duration
	// Rules, for tests, in the place of those of Hosts and Private.
	Rules *outward.Rules
	// Source is who sends, as the events' source.
	Source string
}

// MinSecret is how many bytes a site's secret has at least.
const MinSecret = 24

// What is held and done at a time.
const (
	// maxOpen is how many jobs may wait for their notices, partsOpen of which parts one user has one at most.
	maxOpen   = 100_000
	partsOpen = 4
	// maxDone is how many jobs are remembered whose notices are over, the oldest are forgotten first.
	maxDone = 10_000
	// atOnce is how many attempts are under way, atOnceUser of one user, and atOnceLane of one user at one host.
	atOnce     = 16
	atOnceUser = 4
	atOnceLane = 2
	// restFirst and restMost bound how long a host is left alone that could not be reached.
	restFirst = time.Second
	restMost  = 5 * time.Minute
)

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.GiveUp, 24*time.Hour)
	set(&c.Within, 10*time.Second)
	set(&c.First, 5*time.Second)
	set(&c.Most, time.Hour)
	if c.Rules == nil {
		c.Rules = &outward.Rules{
			Hosts: c.Hosts, Private: c.Private, Refused: node.ErrNoticeRefused, HostsKey: "notify.to", PrivateKey: "notify.private",
		}
	}
	return c
}
