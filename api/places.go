package api

import (
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/node"
)

// places are for requests that stay for long. There are fewer of them than
// connections, so that some always remain for short requests.
type places struct {
	atomic.Int64 // taken; invariant: at most most once enter has returned
	most         int64
	name, title  string // of the problem
	what         string // in the plural
}

// enter takes a place until leave; beyond the bound the request is refused, and
// its connection ended.
func (p *places) enter() (leave func(), err error) {
	if p.Add(1) > p.most {
		p.Add(-1)
		return nil, problem.Crowded(p.name, p.title,
			"this broker keeps "+strconv.FormatInt(p.most, 10)+" "+p.what+" at a time: try again later, or ask another broker")
	}
	return func() { p.Add(-1) }, nil
}

// enter takes a place among event streams and blocking reads.
func (s *Server) enter() (leave func(), err error) { return s.waiters.enter() }

// followed counts those of a handler's requests that follow a log, from before
// it is opened, since that may wait for the task to start, and also while another
// broker answers.
func (s *Server) followed(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		if follow, err := queryBool(r, "follow"); err != nil || !follow {
			return h(w, r, param)
		}
		leave, err := s.followers.enter()
		if err != nil {
			return err
		}
		defer leave()
		return s.elsewhere(w, r, h(w, r, param))
	}
}

// elsewhere has another broker answer, if err says so, before it returns.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request, err error) error {
	var at *node.ElsewhereError
	if errors.As(err, &at) {
		s.forward(w, r, at)
		return nil
	}
	return err
}

// stayed is followed for the pages' streams.
func (s *Server) stayed(route web.Route) web.Handler {
	taken := map[web.Stay]*places{web.Listens: &s.waiters, web.Follows: &s.followers}[route.Stay]
	if taken == nil {
		return route.Handler
	}
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		leave, err := taken.enter()
		if err != nil {
			s.refuse(w, r, problem.Of(err))
			return nil
		}
		defer leave()
		return s.elsewhere(w, r, route.Handler(w, r, param))
	}
}
