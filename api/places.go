package api

import (
	"errors"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/node"
)

// followed counts those of a handler's requests that follow a log, from before
// it is opened, since that may wait for the task to start, and also while another
// broker answers.
func (s *Server) followed(h rest.Handler) rest.Handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		if follow, err := rest.QueryBool(r, "follow"); err != nil || !follow {
			return h(w, r, param)
		}
		leave, err := s.followers.Enter()
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
		s.peers.Forward(w, r, at)
		return nil
	}
	return err
}

// stayed is followed for the pages' streams.
func (s *Server) stayed(route web.Route) web.Handler {
	taken := map[web.Stay]*transport.Places{web.Listens: s.waiters, web.Follows: s.followers}[route.Stay]
	if taken == nil {
		return route.Handler
	}
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		leave, err := taken.Enter()
		if err != nil {
			s.refuse(w, r, problem.Of(err))
			return nil
		}
		defer leave()
		return s.elsewhere(w, r, route.Handler(w, r, param))
	}
}
