// Package ensemble runs ZooKeeper servers from the Debian package's files on
// loopback, without a service or root: for `cloudshare dev` and the tests of the
// ZooKeeper backend (step 3 of a job's way). It imports nothing of ours.
package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrMissing says that Java or the files of the Debian package are not there.
var ErrMissing = errors.New("ZooKeeper is not installed (apt-get install --no-install-recommends zookeeper)")

// jars is what a server needs, as Debian's package zookeeper installs it.
var jars = []string{
	"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-log4j12.jar", "/usr/share/java/log4j-1.2.jar",
}

// Brief are options of Java for servers that live for minutes only: its optimizing compiler takes more
// of a core than it then gives back. Whoever measures a server leaves them out.
var Brief = []string{"-XX:TieredStopAtLevel=1"}

const logging = `log4j.rootLogger=INFO, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=%d{ISO8601} %-5p [%t:%C{1}@%L] %m%n
`

// Config of an ensemble.
type Config struct {
	Dir     string // holds everything; made if absent
	Servers int    // odd; 1 is a standalone server
	// Tick is the unit of the servers' timeouts: sessions last 2 to 20 of them.
	Tick time.Duration
	// HeapMiB bounds each server's Java heap; Flags are further options of Java.
	HeapMiB int
	Flags   []string
	// Detached servers get a session of their own: they do not end with Ctrl-C at
	// a terminal.
	Detached bool

	// Host is the address that servers bind to; empty means 127.0.0.1. Run starts a
	// server's process and Dial connects to it, where that is not this process's
	// network; nil means here.
	Host string
	Run  func(*exec.Cmd) error
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// host returns where servers listen.
func (c *Config) host() string {
	if c.Host == "" {
		return "127.0.0.1"
	}
	return c.Host
}

// Ensemble is a set of servers on loopback.
type Ensemble struct {
	cfg     Config
	servers []*Server
}

// Server is one of them.
type Server struct {
	Addr string // where clients connect
	id   int
	dir  string
	cfg  Config

	mu   sync.Mutex
	cmd  *exec.Cmd     // of the last start
	done chan struct{} // closed when it has ended
}

// Installed returns ErrMissing, with what is missing, if no server can run here.
func Installed() error {
	for _, jar := range jars {
		if _, err := os.Stat(jar); err != nil {
			return fmt.Errorf("%w: no %s", ErrMissing, jar)
		}
	}
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("%w: no java", ErrMissing)
	}
	return nil
}

// New writes the servers' configurations, on ports that are free now, and starts
// none. A directory that holds an ensemble keeps its ports and data.
func New(cfg Config) (*Ensemble, error) {
	if err := Installed(); err != nil {
		return nil, err
	}
	e := &Ensemble{cfg: cfg}
	known, err := e.load()
	if err != nil || known {
		return e, err
	}
	first, err := FreePorts("127.0.0.1", 3*cfg.Servers)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Servers {
		id := i + 1
		s := &Server{
			Addr: net.JoinHostPort(cfg.host(), strconv.Itoa(first+3*i)), id: id,
			dir: filepath.Join(cfg.Dir, strconv.Itoa(id)), cfg: cfg,
		}
		e.servers = append(e.servers, s)
		if err := s.configure(first); err != nil {
			return nil, fmt.Errorf("configure ZooKeeper server %d: %w", id, err)
		}
	}
	return e, nil
}

// load finds the servers of a directory in use.
func (e *Ensemble) load() (bool, error) {
	for id := 1; ; id++ {
		dir := filepath.Join(e.cfg.Dir, strconv.Itoa(id))
		text, err := os.ReadFile(filepath.Join(dir, "zoo.cfg"))
		if errors.Is(err, os.ErrNotExist) {
			return len(e.servers) > 0, nil
		}
		if err != nil {
			return false, fmt.Errorf("read ZooKeeper's configuration: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if port, ok := strings.CutPrefix(strings.TrimSpace(line), "clientPort="); ok {
				e.servers = append(e.servers, &Server{
					Addr: net.JoinHostPort(e.cfg.host(), port), id: id, dir: dir,
					cfg: e.cfg,
				})
			}
		}
	}
}

func (s *Server) configure(first int) error {
	if err := os.MkdirAll(filepath.Join(s.dir, "data"), 0o700); err != nil {
		return err
	}
	// forceSync stays on: an acknowledged entry is on the disks of a majority.
	text := fmt.Sprintf("tickTime=%d\ninitLimit=20\nsyncLimit=10\ndataDir=%s\nclientPort=%s\nclientPortAddress=%s\n"+
		"maxClientCnxns=0\n4lw.commands.whitelist=srvr,mntr,ruok\nautopurge.purgeInterval=1\nautopurge.snapRetainCount=3\n",
		s.cfg.Tick.Milliseconds(), filepath.Join(s.dir, "data"), s.Addr[strings.LastIndexByte(s.Addr, ':')+1:], s.cfg.host())
	if n := s.cfg.Servers; n > 1 {
		for i := range n {
			text += fmt.Sprintf("server.%d=%s:%d:%d\n", i+1, s.cfg.host(), first+3*i+1, first+3*i+2)
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "data", "myid"), []byte(strconv.Itoa(s.id)+"\n"), 0o600),
		os.WriteFile(filepath.Join(s.dir, "log4j.properties"), []byte(logging), 0o600),
		os.WriteFile(filepath.Join(s.dir, "zoo.cfg"), []byte(text), 0o600),
	)
}

// Servers returns them all.
func (e *Ensemble) Servers() []*Server { return e.servers }

// Addrs returns where clients connect, separated by commas.
func (e *Ensemble) Addrs() string {
	addrs := make([]string, 0, len(e.servers))
	for _, s := range e.servers {
		addrs = append(addrs, s.Addr)
	}
	return strings.Join(addrs, ",")
}

// Start starts every server and waits until clients are served.
func (e *Ensemble) Start(ctx context.Context) error {
	for _, s := range e.servers {
		if err := s.Start(); err != nil {
			return err
		}
	}
	return e.Await(ctx)
}

// Await returns once all servers that run serve clients.
func (e *Ensemble) Await(ctx context.Context) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if !slices.ContainsFunc(e.servers, func(s *Server) bool { return s.runs() && s.Mode() == "" }) {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("await ZooKeeper in %s: %w: its log is there", e.cfg.Dir, context.Cause(ctx))
		}
	}
}

// Leader returns the server that leads the ensemble, or nil.
func (e *Ensemble) Leader() *Server {
	for _, s := range e.servers {
		if m := s.Mode(); m == "leader" || m == "standalone" {
			return s
		}
	}
	return nil
}

// Stop kills every server and waits for their ends.
func (e *Ensemble) Stop() {
	for _, s := range e.servers {
		s.Kill()
	}
}

// Start starts the server, which must not run, on its data.
func (s *Server) Start() error {
	out, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open ZooKeeper's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command("java", append(slices.Clone(s.cfg.Flags), "-Xmx"+strconv.Itoa(s.cfg.HeapMiB)+"m", "-XX:+UseSerialGC",
		"-Dzookeeper.admin.enableServer=false", "-Djava.net.preferIPv4Stack=true",
		"-cp", strings.Join(append([]string{s.dir}, jars...), ":"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.dir, "zoo.cfg"))...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: s.cfg.Detached}
	run := s.cfg.Run
	if run == nil {
		run = (*exec.Cmd).Start
	}
	if err := run(cmd); err != nil {
		return fmt.Errorf("start ZooKeeper: %w", err)
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	go func() {
		defer close(done)
		_ = cmd.Wait() // however it ends, its log says why
	}()
	return nil
}

// Signal sends a signal to the server: SIGSTOP wedges it, SIGCONT wakes it.
func (s *Server) Signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig) // it may have ended
	}
}

// Kill ends the server at once, and waits for it.
func (s *Server) Kill() {
	s.Signal(syscall.SIGKILL)
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Ended is closed when the last start of the server has ended; nil before one.
func (s *Server) Ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func (s *Server) runs() bool {
	done := s.Ended()
	if done == nil {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// Mode returns leader, follower or standalone; empty while it serves nobody.
func (s *Server) Mode() string { return s.query("srvr", "Mode: ") }

// Znodes returns how many nodes the server holds, -1 if it does not answer.
func (s *Server) Znodes() int {
	n, err := strconv.Atoi(s.query("srvr", "Node count: "))
	if err != nil {
		return -1
	}
	return n
}

// query sends a four-letter word and returns what follows a prefix in the answer.
func (s *Server) query(word, prefix string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	dial := s.cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", s.Addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte(word)); err != nil {
		return ""
	}
	var answer [4096]byte
	n := 0
	for n < len(answer) {
		k, err := conn.Read(answer[n:])
		if n += k; err != nil {
			break
		}
	}
	for line := range strings.Lines(string(answer[:n])) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return v
		}
	}
	return ""
}
