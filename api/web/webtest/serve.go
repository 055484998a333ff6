package webtest

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Config has pages of a fixture, with its history and its clock.
func Config(b *Broker) web.Config {
	return web.Config{
		Source: b, Roster: b, History: History{b}, Usages: Usages{}, Version: "test",
		Problem: Problem, Pace: 20 * time.Millisecond,
		Now: func() time.Time { return b.Now },
	}
}

// Problem words the errors of a fixture.
func Problem(err error) web.Problem {
	status := http.StatusInternalServerError
	for _, row := range []struct {
		err    error
		status int
	}{
		{node.ErrNotFound, http.StatusNotFound},
		{command.ErrBadID, http.StatusNotFound},
		{node.ErrEnded, http.StatusConflict},
		{node.ErrBadCursor, http.StatusBadRequest},
	} {
		if errors.Is(err, row.err) {
			status = row.status
		}
	}
	return web.Problem{Status: status, Title: http.StatusText(status), Detail: err.Error()}
}

// Serve routes to the pages. A request that another broker is to answer gets
// 418 and its name.
func Serve(p *web.Pages) http.Handler {
	mux := http.NewServeMux()
	for _, r := range p.Routes() {
		path := r.Path
		if path == "/" {
			path = "/{$}"
		}
		mux.HandleFunc(r.Method+" "+strings.TrimSpace(path), func(w http.ResponseWriter, q *http.Request) {
			err := r.Handler(w, q, q.PathValue)
			var e *node.ElsewhereError
			if errors.As(err, &e) {
				w.Header().Set("Elsewhere", e.Site)
				w.WriteHeader(http.StatusTeapot)
			}
		})
	}
	return mux
}
