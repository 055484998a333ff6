package carry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Root is the path of all that is asked for here; it names the version of the streams.
const Root = "/files/1/"

// State is how much of what a task has left its handler has.
type State struct {
	Have  int64 `json:"have"` // bytes of the stream
	Whole bool  `json:"whole"`
}

// ErrGone says that nobody wants an attempt's files any more.
var ErrGone = errors.New("its attempt is over")

// Site is the handler, as pods see it. Its errors are ErrGone, ErrGarbled, or pass.
type Site interface {
	// IsOf reports whether a token is that of the attempt.
	IsOf(attempt, token string) bool
	// Files returns what the attempt's task is to find.
	Files(attempt string) (List, error)
	// Sent returns what the handler has of what the task has left, sent by that life of its container.
	Sent(attempt, run string) (State, error)
	// Receive takes more of it, from where the handler stands, or all of it again from 0; in ends where all was sent.
	Receive(ctx context.Context, attempt, run string, from int64, in io.Reader) (State, error)
}

const (
	// stall is how long a stream may stand still.
	stall = 30 * time.Second
	// maxStreams bounds those at a time; others come again.
	maxStreams = 64
)

type server struct {
	site Site
	free chan struct{}
}

// Handler serves files to the pods of a site.
func Handler(site Site) http.Handler {
	s := &server{site: site, free: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Root+"in", s.of(s.files))
	mux.HandleFunc("GET "+Root+"out", s.of(s.sent))
	mux.HandleFunc("POST "+Root+"out", s.of(s.receive))
	return mux
}

// call is a request of an attempt's pod.
type call struct {
	w            http.ResponseWriter
	r            *http.Request
	attempt, run string
	from         int64
}

// of lets in who comes over TLS and has the attempt's token.
func (s *server) of(serve func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		c := &call{w: w, r: r, attempt: q.Get("attempt"), run: q.Get("run")}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isSecret(r.Context()) || !s.site.IsOf(c.attempt, token) {
			w.Header().Set("Connection", "close")
			http.Error(w, "files are for who has their attempt's token, over TLS", http.StatusForbidden)
			return
		}
		var err error
		if c.from, err = strconv.ParseInt(q.Get("from"), 10, 64); err != nil || c.from < 0 {
			http.Error(w, "from is no place in a stream", http.StatusBadRequest)
			return
		}
		select {
		case s.free <- struct{}{}:
		default:
			http.Error(w, "too many files travel now", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-s.free }()
		if err = serve(c); err != nil {
			http.Error(w, err.Error(), status(err))
		}
	}
}

func status(err error) int {
	switch {
	case errors.Is(err, ErrGone):
		return http.StatusGone
	case errors.Is(err, ErrGarbled):
		return http.StatusUnprocessableEntity
	}
	return http.StatusServiceUnavailable
}

func (s *server) files(c *call) error {
	list, err := s.site.Files(c.attempt)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/octet-stream")
	if err = list.WriteFrom(c.r.Context(), c.lively(), c.from); err != nil {
		panic(http.ErrAbortHandler) // it is cut, and asked for again
	}
	return nil
}

func (s *server) sent(c *call) error { return c.tell(s.site.Sent(c.attempt, c.run)) }

func (s *server) receive(c *call) error {
	return c.tell(s.site.Receive(c.r.Context(), c.attempt, c.run, c.from, c.lively()))
}

func (c *call) tell(st State, err error) error {
	if err != nil {
		return err
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(stall))
	c.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.w).Encode(st)
}

// lively returns the streams of a call, which may take any time as long as they move.
func (c *call) lively() *lively { return &lively{c.w, c.r.Body, http.NewResponseController(c.w)} }

type lively struct {
	out     http.ResponseWriter
	in      io.Reader
	control *http.ResponseController
}

// Read implements io.Reader.
func (l *lively) Read(p []byte) (int, error) {
	if err := l.control.SetReadDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return l.in.Read(p)
}

// Write implements io.Writer.
func (l *lively) Write(p []byte) (int, error) {
	if err := l.control.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return l.out.Write(p)
}
