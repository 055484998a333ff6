package client

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Staleness says that the broker that answered has no contact with the leader.
type Staleness struct {
	// Age is how old the answer may be; Known is false if that broker had no
	// contact since it started.
	Age   time.Duration
	Known bool
}

// fresh is how old the answers of a client may be.
type fresh struct {
	most  *time.Duration // nil: any age
	stale func(Staleness)
}

// Fresh returns a client whose reads of jobs, tasks, why one waits, sites, the
// queue, the ledger, the policy and the status are refused (503 "stale") if the
// state that the broker knows is older than most; 0 has the leader confirm each.
// A negative one accepts any age. stale, unless nil, is called for each answer of
// a broker without contact with the leader. It shares c's connections.
func (c *Client) Fresh(most time.Duration, stale func(Staleness)) *Client {
	f := &fresh{stale: stale}
	if most >= 0 {
		f.most = &most
	}
	with := *c
	with.fresh = f
	return &with
}

// query adds what is asked for.
func (f *fresh) query(q url.Values) url.Values {
	if f == nil || f.most == nil {
		return q
	}
	if q == nil {
		q = url.Values{}
	}
	q.Set("max_staleness", f.most.String())
	return q
}

// reportStale tells of an answer that is stale.
func (f *fresh) reportStale(h http.Header) {
	if f == nil || f.stale == nil || h.Get(wire.HeaderStale) != "true" {
		return
	}
	var s Staleness
	if age, err := strconv.ParseFloat(h.Get(wire.HeaderAge), 64); err == nil && age >= 0 && age < 1e9 {
		s = Staleness{Age: time.Duration(age * float64(time.Second)), Known: true}
	}
	f.stale(s)
}
