package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// watch is how far the answers of a watching client went.
type watch struct {
	index, home uint64
	wait        time.Duration
}

// Watching returns a client whose reads of jobs, tasks, why one waits, sites, the
// queue, the ledger and the status block: each but the first is answered once something
// has happened since the last answer, or after wait (at most 5 minutes, rounded
// up to milliseconds). It shares c's connections, and is for one goroutine.
//
// An answer may be like the last one: what happened need not concern it.
func (c *Client) Watching(wait time.Duration) *Client {
	with := *c
	with.watch = &watch{wait: max(time.Millisecond, wait.Round(time.Millisecond))}
	return &with
}

// query adds what a blocking read waits for.
func (w *watch) query(q url.Values) url.Values {
	if w == nil || w.index == 0 {
		return q
	}
	if q == nil {
		q = url.Values{}
	}
	q.Set("index", fmt.Sprint(w.index))
	q.Set("home", fmt.Sprint(w.home))
	q.Set("wait", w.wait.String())
	return q
}

// recordIndexes takes how far an answer goes. One that went back, by a broker that is
// behind, is believed too: the next read waits for it to catch up with itself.
func (w *watch) recordIndexes(h http.Header) {
	if w == nil {
		return
	}
	w.index, _ = strconv.ParseUint(h.Get(wire.HeaderIndex), 10, 64)
	w.home, _ = strconv.ParseUint(h.Get(wire.HeaderHome), 10, 64)
}
