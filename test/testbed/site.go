package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Site is one broker process and its HTTP API.
type Site struct {
	Name string
	URL  *url.URL
	Dir  string // its data, config.yaml, broker.pid, broker.log and token
	// TokenPath is the file with its operator's token; empty means token in Dir.
	TokenPath string
	// Read reads it; nil means where this process runs.
	Read func(path string) ([]byte, error)
	// HTTP asks the site; nil means a client that all sites share.
	HTTP *http.Client
	// Dial connects to the site, from where it can be reached; nil means from where this process runs.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Connect opens a connection to the site's API.
func (s *Site) Connect(ctx context.Context) (net.Conn, error) {
	dial := s.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", s.URL.Host)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.Name, err)
	}
	return conn, nil
}

// Token returns the token of the site's operator.
func (s *Site) Token() (string, error) {
	read := s.Read
	if read == nil {
		read = os.ReadFile
	}
	text, err := read(s.TokenFile())
	if err != nil {
		return "", fmt.Errorf("read token of %s: %w", s.Name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// TokenFile is where it is.
func (s *Site) TokenFile() string {
	if s.TokenPath != "" {
		return s.TokenPath
	}
	return filepath.Join(s.Dir, "token")
}

// Authorize adds the token to a request's header, once there is one: what is open to everybody
// may be asked before.
func (s *Site) Authorize(h http.Header) {
	if text, err := s.Token(); err == nil {
		h.Set("Authorization", "Bearer "+text)
	}
}

// Env has the other commands find the tokens of a Federation's sites as a user's do.
func (s *Site) Env() []string { return []string{configHome(filepath.Dir(s.Dir))} }

// configHome keeps a federation's commands out of the user's own folder.
func configHome(dir string) string { return "XDG_CONFIG_HOME=" + filepath.Join(dir, "config") }

// PID of the broker as its pid file says.
func (s *Site) PID() (int, error) {
	data, err := os.ReadFile(filepath.Join(s.Dir, "broker.pid"))
	if err != nil {
		return 0, fmt.Errorf("read pid of %s: %w", s.Name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("pid file of %s holds %q", s.Name, data)
	}
	return pid, nil
}

// Signal sends a signal to the broker alone.
func (s *Site) Signal(sig syscall.Signal) error {
	pid, err := s.PID()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("send %s to %s: %w", sig, s.Name, err)
	}
	return nil
}

// Kill ends the broker like a crash and waits until it is gone. Its tasks stay.
func (s *Site) Kill() error {
	if err := s.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return s.awaitGone(10 * time.Second)
}

// Alive reports whether the broker's process runs. A zombie does not, unless some of its
// threads still end: with the last one its files are closed, and its ports are free.
func (s *Site) Alive() bool {
	pid, err := s.PID()
	if err != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// "pid (name) state …": the name may hold spaces and brackets.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	if ok && strings.HasPrefix(rest, "Z") {
		threads, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task") // none: it is gone
		return len(threads) > 1
	}
	return ok && s.ours(pid)
}

// ours guards against a reused pid: the broker was started with this folder. One that
// ends has no command line any more, but its files are still open.
func (s *Site) ours(pid int) bool {
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && (len(cmdline) == 0 || strings.Contains(string(cmdline), s.Dir))
}

func (s *Site) awaitGone(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return Await(ctx, s.Name+" gone", func() error {
		if s.Alive() {
			return errors.New("still runs")
		}
		return nil
	})
}

// LogTail returns the last n lines of the broker's log.
func (s *Site) LogTail(n int) string { return tail(filepath.Join(s.Dir, "broker.log"), n) }

// PeerAddress returns where the broker listens for other brokers.
func (s *Site) PeerAddress() (string, error) {
	path := filepath.Join(s.Dir, "config.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read configuration of %s: %w", s.Name, err)
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "peer:"); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`), nil
		}
	}
	return "", fmt.Errorf("%s names no peer address", path)
}
