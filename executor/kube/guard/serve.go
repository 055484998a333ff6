package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cloudshare/cloudshare/executor/kube/carry"
)

// path of the questions; it names their version.
var path = "/watchdog/" + strconv.Itoa(version)

// Bounds of what a handler takes from outside.
const (
	maxHeader = 8 << 10 // bytes
	maxConns  = 32 << 10
	slow      = 5 * time.Second // to ask one question, once begun
	idle      = 2 * time.Minute // between two, beyond what any guard lets pass
)

// NewServer answers the guards of all attempts whose secrets were made with key, and serves files to their pods.
// Whoever does not know one learns nothing.
func NewServer(key []byte, answer func(Question) Answer, files carry.Site) *http.Server {
	mux := http.NewServeMux()
	if files != nil {
		mux.Handle(carry.Root, carry.Handler(files))
	}
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		q, err := readQuestion(r.URL.Query(), key)
		switch {
		case errors.Is(err, ErrForged):
			refuse(w, err.Error(), http.StatusForbidden)
		case err != nil:
			refuse(w, err.Error(), http.StatusBadRequest)
		default:
			_, _ = io.WriteString(w, answer(q).encode(q, SecretOf(key, q.Attempt)))
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, "nothing is answered here but questions under "+path, http.StatusNotFound)
	})
	return &http.Server{
		Handler: mux, ReadTimeout: slow, WriteTimeout: slow, IdleTimeout: idle,
		MaxHeaderBytes: maxHeader, ConnContext: carry.ConnContext,
	}
}

// refuse keeps no connection: they are for those who know a secret.
func refuse(w http.ResponseWriter, why string, code int) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, code)
}

// Listen takes the address for a server; key is the handler's, as files have it.
func Listen(addr string, key carry.Key) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for watchdogs: %w", err)
	}
	return carry.Listen(netutil.LimitListener(l, maxConns), key)
}
