package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxTargets is how many jobs one request may name.
	maxTargets = 1000
	// maxPeerAnswer bounds another broker's answer about them, in bytes.
	maxPeerAnswer = 16 << 20
)

// target is a job that a request names, or some of its tasks.
type target struct {
	node.CancelTarget
	text string // as it was named
}

// targets reads the jobs that a request names: each once, at most maxTargets.
func targets(r *http.Request, withTasks bool) ([]target, error) {
	var out []target
	seen := map[string]bool{}
	for _, text := range r.URL.Query()["job"] {
		if seen[text] {
			continue
		}
		seen[text] = true
		t, err := parseTarget(text, withTasks)
		if err != nil {
			return nil, err
		}
		if out = append(out, t); len(out) > maxTargets {
			return nil, badQuery("job", "", "names more than "+strconv.Itoa(maxTargets)+" jobs; ask in parts")
		}
	}
	return out, nil
}

// parseTarget reads SITE.NUMBER, or SITE.NUMBER/TASKS.
func parseTarget(text string, withTasks bool) (t target, err error) {
	t.text = text
	name, tasks, some := cut(text)
	if t.Job, err = fsm.ParseJobID(name); err != nil || some && !withTasks {
		return t, badQuery("job", text, "must be a job's id, such as site-1.42")
	}
	if some {
		if t.Tasks, err = node.ParseIndices(tasks); err != nil {
			return t, badQuery("job", text, "after the job's id "+err.Error())
		}
	}
	return t, nil
}

// others gathers the targets of a request that other brokers answer for.
type others struct {
	sites map[string]*elsewhere
}

// elsewhere is what one other broker answers for.
type elsewhere struct {
	at   *node.ElsewhereError
	jobs []int // places in the request
}

// take notes a target if another broker answers for it.
func (o *others) take(i int, err error) bool {
	var at *node.ElsewhereError
	if !errors.As(err, &at) {
		return false
	}
	if o.sites == nil {
		o.sites = map[string]*elsewhere{}
	}
	if o.sites[at.Site] == nil {
		o.sites[at.Site] = &elsewhere{at: at}
	}
	o.sites[at.Site].jobs = append(o.sites[at.Site].jobs, i)
	return true
}

// ask has each of the brokers answer for its targets, searchWidth at a time.
func (o *others) ask(each func(*elsewhere)) {
	var running sync.WaitGroup
	room := make(chan struct{}, searchWidth)
	for _, e := range o.sites {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			each(e)
		})
	}
	running.Wait()
}

// askPeer puts a question to another broker in a client's name, and reads its JSON
// answer. A refusal is a *problem.
func askPeer[T any](ctx context.Context, s *Server, r *http.Request, at *node.ElsewhereError, query url.Values) (out T, err error) {
	switch {
	case at.HTTP == "":
		return out, unreachable(at, "its address is not known")
	case hops(r) >= maxHops:
		return out, unreachable(at, "the request was passed on "+strconv.Itoa(maxHops)+" times without finding it")
	}
	u := url.URL{Scheme: "http", Host: at.HTTP, Path: r.URL.Path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), nil)
	if err != nil {
		return out, unreachable(at, "its address "+at.HTTP+" is malformed")
	}
	req.Header.Set(wire.HeaderHops, strconv.Itoa(hops(r)+1))
	res, err := s.peers.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		return out, unreachable(at, "its broker at "+at.HTTP+" does not answer")
	}
	defer res.Body.Close()
	in := json.NewDecoder(io.LimitReader(res.Body, maxPeerAnswer))
	if res.StatusCode >= http.StatusBadRequest {
		p := &problem{}
		if in.Decode(&p.Problem) != nil || p.Status == 0 {
			return out, unreachable(at, "its broker at "+at.HTTP+" answers "+strconv.Itoa(res.StatusCode))
		}
		return out, p
	}
	if in.Decode(&out) != nil {
		return out, unreachable(at, "its broker at "+at.HTTP+" broke off")
	}
	return out, nil
}
