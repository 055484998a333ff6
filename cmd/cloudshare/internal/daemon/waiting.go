package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"

	"github.com/cloudshare/cloudshare/api/wire"
)

// waitingConns bounds the connections at a time; more wait to be accepted. Each has
// one request and ends within seconds.
const waitingConns = 64

// waitingRoom answers at the API's address while the broker waits to be admitted to
// a federation, before it has an API: it lives, and says why it is not ready.
type waitingRoom struct {
	addr string
	site string
	log  zerolog.Logger

	mu     sync.Mutex
	server *http.Server // nil until there is something to say
	ended  chan struct{}
	why    string
}

// setJoinError says what the peers that are asked have said last.
func (w *waitingRoom) setJoinError(through []string, why error) {
	w.setReason(fmt.Sprintf("this broker waits to be admitted to its federation, through %s: %v", strings.Join(through, ", "), why))
}

// setReason tells what the broker waits for; the first time, it opens.
func (w *waitingRoom) setReason(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = why
	if w.server != nil {
		return
	}
	ln, err := net.Listen("tcp", w.addr)
	if err != nil {
		w.log.Warn().Err(err).Msg("nobody is told over HTTP that this broker waits to join")
		return
	}
	ln = netutil.LimitListener(ln, waitingConns)
	w.server = &http.Server{
		Handler: w, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		MaxHeaderBytes: 8 << 10,
	}
	w.server.SetKeepAlivesEnabled(false)
	w.ended = make(chan struct{})
	go func(s *http.Server) {
		defer close(w.ended)
		_ = s.Serve(ln) // ErrServerClosed
	}(w.server)
}

// close frees the address for the API.
func (w *waitingRoom) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server != nil {
		_ = w.server.Close()
		<-w.ended
	}
}

// ServeHTTP implements http.Handler.
func (w *waitingRoom) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/livez" {
		out.Header().Set("Content-Type", wire.TypeJSON)
		_ = json.NewEncoder(out).Encode(map[string]string{"status": "ok", "site": w.site})
		return
	}
	w.mu.Lock()
	p := wire.Problem{
		Type: wire.ProblemPrefix + "not-ready", Title: "The broker is not ready", Status: http.StatusServiceUnavailable, Detail: w.why, RetryAfter: 1,
	}
	w.mu.Unlock()
	out.Header().Set("Content-Type", wire.TypeProblem)
	out.Header().Set("Retry-After", "1")
	out.WriteHeader(p.Status)
	_ = json.NewEncoder(out).Encode(p)
}
