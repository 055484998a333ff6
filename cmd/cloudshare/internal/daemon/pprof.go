package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// debugSocket is where a broker shows its insides to whoever may open the file:
// its own user, and root. `debug bundle` asks there.
const debugSocket = "debug.sock"

// maxSocketPath is what the system takes for the name of a socket.
const maxSocketPath = 107

// debugServer serves profiles and the last log lines on a socket in the data
// directory and, if asked to, profiles on a loopback port.
type debugServer struct {
	servers []*http.Server
	done    chan error
	pprof   string // address of the port, "" = none
}

// openDebug listens. A socket that cannot be made is no reason not to start.
func openDebug(cfg config.Config, log zerolog.Logger) (*debugServer, error) {
	d := &debugServer{done: make(chan error, 2)}
	profiles := profileRoutes()
	if cfg.PProf != "" {
		l, err := net.Listen("tcp", cfg.PProf)
		if err != nil {
			return nil, fmt.Errorf("listen for profiles on %s: %w", cfg.PProf, err)
		}
		d.pprof = l.Addr().String()
		log.Info().Str("pprof", "http://"+d.pprof+"/debug/pprof/").Msg("profiles served")
		d.serve(l, loopbackOnly(profiles))
	}
	l, err := listenSocket(filepath.Join(cfg.DataDir, debugSocket))
	if err != nil {
		log.Warn().Err(err).Msg("debug bundles will have no profiles and no log lines")
		return d, nil
	}
	inside := http.NewServeMux()
	inside.Handle("/debug/pprof/", profiles)
	inside.HandleFunc("/debug/logs", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(lastLines.bytes()) })
	inside.HandleFunc("/debug/config", func(w http.ResponseWriter, _ *http.Request) { _ = cli.WriteJSON(w, cfg.Shown()) })
	d.serve(l, inside)
	return d, nil
}

func profileRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// loopbackOnly refuses what a web page of another name has a browser ask: the
// port is on loopback, and so is the browser.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "ask by a loopback address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// listenSocket takes over what a broker that was killed left: the journal's lock
// says that none runs.
func listenSocket(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path has more than %d bytes: choose a shorter data_dir", path, maxSocketPath)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close %s to others: %w", path, err), l.Close())
	}
	return l, nil
}

func (d *debugServer) serve(l net.Listener, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	d.servers = append(d.servers, s)
	go func() { d.done <- s.Serve(l) }()
}

// close ends the listeners and waits for them.
func (d *debugServer) close() error {
	var errs []error
	for _, s := range d.servers {
		errs = append(errs, s.Close())
	}
	for range d.servers {
		if err := <-d.done; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// askSocket asks a broker's debug socket.
func askSocket(ctx context.Context, dataDir, path string) (*http.Response, error) {
	socket := filepath.Join(dataDir, debugSocket)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", socket, err)
	}
	return client.Do(req)
}
