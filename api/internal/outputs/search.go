package outputs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// MaxSearches go on at a time; more wait. A question to one broker becomes
	// questions to all, so they must not pile up.
	MaxSearches = 16
	// searchHold is how long one search may keep others waiting. Brokers that answer have
	// done so by then; one that accepts connections and is silent takes PeerTimeout. So
	// no more than MaxSearches · PeerTimeout/searchHold wait for such ones at a time.
	searchHold = 500 * time.Millisecond
	// namedSites of those that could not be asked are named to the client.
	namedSites = 5
)

// foundLog is an answer that another broker has begun to send.
type foundLog struct {
	body  io.ReadCloser
	index string // of the broker that answers
}

// finding is one broker's answer: a log, that it has none, or the error of asking it.
type finding struct {
	site string
	log  *foundLog
	miss error
}

// errHasNot: the broker was asked and has it not.
var errHasNot = errors.New("it has it not")

// question asks a broker for the log of a query: its last lines only, if tail > 0.
func question(q node.LogQuery, tail int) url.URL {
	query := url.Values{"task": {strconv.FormatUint(uint64(q.Task), 10)}, "stream": {q.Stream}, "follow": {strconv.FormatBool(q.Follow)}}
	if q.Attempt > 0 {
		query.Set("attempt", strconv.FormatUint(uint64(q.Attempt), 10))
	}
	if tail > 0 {
		query.Set("tail", strconv.Itoa(tail))
	}
	return url.URL{Path: "/v1/jobs/" + q.Job.String() + "/logs", RawQuery: query.Encode()}
}

// search puts a question to the brokers that may have the answer, and returns the first that
// does; the others are hung up on. It ends after
// PeerTimeout, or as soon as all have answered. A 404 is certain: everybody was
// asked.
func (o *Outputs) search(ctx context.Context, e *node.AnywhereError) (*foundLog, error) {
	asking, hangUp := context.WithTimeout(ctx, o.peers.Timeout())
	defer hangUp()
	leave, err := o.enterSearch(asking, e.What)
	if err != nil {
		return nil, err
	}
	defer leave()
	findings := o.askAll(ctx, asking, question(e.Query, 0), e.Sites)
	var found *foundLog
	var gone *problem.Problem
	var missed []finding
	for f := range findings {
		switch {
		case errors.As(f.miss, &gone):
			hangUp()
		case f.log != nil && found == nil:
			found = f.log
			hangUp()
		case f.log != nil: // a second one, at the same moment
			_ = f.log.body.Close()
		case !errors.Is(f.miss, errHasNot):
			missed = append(missed, f)
		}
	}
	switch {
	case found != nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case gone != nil:
		return nil, gone
	case len(missed) > 0:
		return nil, notAsked(e.What, missed)
	case e.Here != nil:
		return nil, e.Here
	}
	return nil, fmt.Errorf("%s did not run at any site of the federation, or its logs are gone: %w", e.What, node.ErrNotFound)
}

// enterSearch takes a place among the searches that go on, until leave or for searchHold:
// those who ask for the outputs of a silent site must not hold up all others.
func (o *Outputs) enterSearch(ctx context.Context, what string) (leave func(), err error) {
	select {
	case o.searches <- struct{}{}:
		free := sync.OnceFunc(func() { <-o.searches })
		overdue := time.AfterFunc(searchHold, free)
		return func() { overdue.Stop(); free() }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("look for %s: too many searches at a time: %w", what, ctx.Err())
	}
}

// askAll asks until asking ends; what was found by then goes on until ctx does.
func (o *Outputs) askAll(ctx, asking context.Context, question url.URL, sites []node.ElsewhereError) <-chan finding {
	return peers.AskEach(sites, func(site node.ElsewhereError) finding {
		log, miss := o.askOne(ctx, asking, question, site)
		return finding{site.Site, log, miss}
	})
}

// askOne asks one broker for what it has itself.
func (o *Outputs) askOne(ctx, asking context.Context, question url.URL, at node.ElsewhereError) (*foundLog, error) {
	ctx, end := context.WithCancel(ctx)
	keep := context.AfterFunc(asking, end)
	res, err := o.peers.Ask(ctx, http.MethodGet, &at, question, peers.MaxHops, http.Header{wire.HeaderHere: {"true"}})
	if err != nil {
		end()
		return nil, err
	}
	if res.StatusCode == http.StatusOK && keep() {
		return &foundLog{&endingBody{res.Body, end}, res.Header.Get(wire.HeaderIndex)}, nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	end()
	_ = res.Body.Close()
	return nil, hasNot(&at, res.StatusCode, body)
}

// hasNot reads what a broker answers instead of a log: errHasNot, a *problem that says
// what has become of it there, or why it could not tell (*notNow: itself).
func hasNot(at *node.ElsewhereError, status int, body []byte) error {
	var said wire.Problem
	var p *problem.Problem
	if json.Unmarshal(body, &said) == nil {
		p = problem.Told(&said)
	}
	switch {
	case p != nil && (p.Type == wire.ProblemPrefix+problem.OutputGone ||
		p.Type == wire.ProblemPrefix+problem.OutputDamaged):
		return p
	case p != nil && p.Type == wire.ProblemPrefix+problem.OutputUnreadable:
		return &notNow{p}
	case status == http.StatusNotFound:
		return errHasNot
	case p != nil && p.Detail != "":
		return errors.New(p.Detail)
	}
	return fmt.Errorf("its broker at %s answers %d", at.Peer, status)
}

// notNow is of a broker that answers and cannot tell now whether it has an output: it
// settles no search.
type notNow struct{ problem *problem.Problem }

func (e *notNow) Error() string { return e.problem.Error() }

// endingBody ends its request when it is closed.
type endingBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// notAsked names the sites that could not be asked: one of them may have it.
func notAsked(what string, missed []finding) *problem.Problem {
	var names []string
	for _, f := range missed[:min(len(missed), namedSites)] {
		names = append(names, f.site)
	}
	list := strings.Join(names, ", ")
	if n := len(missed) - len(names); n > 0 {
		list += " and " + strconv.Itoa(n) + " more"
	}
	p := problem.New(http.StatusServiceUnavailable, "executor-unreachable", "A site that may have it cannot be reached",
		problem.OneLine(fmt.Sprintf("%s is at none of the sites that answer; %s cannot be asked (%s: %s); ask again when back", what, list, missed[0].site, missed[0].miss)))
	p.RetryAfter = 5
	return p
}
