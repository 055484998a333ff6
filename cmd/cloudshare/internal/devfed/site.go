package devfed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// devSite is one site of a dev federation: a folder with config.yaml, the
// broker's data, its log and its pid.
type devSite struct {
	Name       string
	Dir        string
	HTTP, Peer string
	Cores      int
	backend    string // lines of config.yaml that name another backend than Raft
	sandbox    string // and those of its sandbox
	fresh      bool   // it has no data yet: it must found or join
	child      *child
}

func (s *devSite) file(name string) string { return filepath.Join(s.Dir, name) }

// plan finds the sites' ports: the old ones of a folder that was used before,
// else consecutive ones, HTTP first.
func (d *dev) plan(host string, port int) ([]*devSite, error) {
	keys, err := sandboxKeys(d.contain, d.share)
	if err != nil {
		return nil, err
	}
	sites := make([]*devSite, d.sites)
	for i := range sites {
		s := &devSite{
			Name: "site-" + strconv.Itoa(i+1), Cores: d.cores, fresh: true, sandbox: keys,
			HTTP: net.JoinHostPort(host, strconv.Itoa(port+i)),
			Peer: net.JoinHostPort(host, strconv.Itoa(port+d.sites+i)),
		}
		s.Dir = filepath.Join(d.dataDir, s.Name)
		if err := d.recall(s); err != nil {
			return nil, err
		}
		sites[i] = s
	}
	return sites, d.settlePeers(host, sites)
}

// recall takes over what an earlier run wrote, except for flags given now.
func (d *dev) recall(s *devSite) error {
	old, err := readSite(s.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Peer = old.Peer
	if !d.httpSet {
		s.HTTP = old.HTTP
	}
	if !d.coresSet {
		s.Cores = old.Cores
	}
	s.fresh = old.fresh
	s.backend = old.backend
	if !d.sandboxSet {
		s.sandbox = old.sandbox
	}
	on := config.Raft
	if old.backend != "" {
		on = config.ZooKeeper
	}
	if d.coordinationSet && on != d.coordination && !old.fresh {
		return cli.Usage("--coordination %s: the data in %s are on %s", d.coordination, s.Dir, on)
	}
	if !old.fresh {
		d.coordination = on
	}
	return nil
}

// readSite reads a site's folder; the error is os.ErrNotExist if it has none.
func readSite(dir string) (*devSite, error) {
	path := filepath.Join(dir, "config.yaml")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	cfg, err := config.Load(path, pflag.NewFlagSet("", pflag.ContinueOnError), func() []string { return nil })
	if err != nil {
		return nil, err
	}
	old, err := config.HasData(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("look into the data of %s: %w", cfg.Site, err)
	}
	s := &devSite{Name: cfg.Site, Dir: dir, HTTP: cfg.HTTP, Peer: cfg.Peer, Cores: cfg.Cores, fresh: !old}
	if s.sandbox, err = sandboxKeys(cfg.Sandbox.Tasks, cfg.Sandbox.Share); err != nil {
		return nil, err
	}
	if cfg.Coordination == config.ZooKeeper {
		s.backend = backendKeys(cfg.ZK, cfg.ZKAuth, cfg.ZKSession)
	}
	return s, nil
}

// settlePeers moves the peer ports of fresh sites that are taken: they are
// nobody's business but the federation's.
func (d *dev) settlePeers(host string, sites []*devSite) error {
	for _, s := range sites {
		if !s.fresh || config.PortFree(s.Peer) == nil {
			continue
		}
		port, err := ensemble.FreePorts(host, 1)
		if err != nil {
			return fmt.Errorf("find a port for the peers of %s: %w", s.Name, err)
		}
		s.Peer = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return nil
}

// freePorts refuses to start anything while an address is taken.
func freePorts(sites []*devSite) error {
	for _, s := range sites {
		if pid := s.pid(); pid != 0 {
			return fmt.Errorf("a broker of %s runs already, as process %d (its dev was killed?): end it with kill %d, or choose another --data-dir", s.Name, pid, pid)
		}
		for key, addr := range map[string]string{"http": s.HTTP, "peer": s.Peer} {
			if err := config.PortFree(addr); err != nil {
				return fmt.Errorf("%s address %s of %s is taken (%w): stop what listens there, or choose others with --http", key, addr, s.Name, err)
			}
		}
	}
	return nil
}

// gossip listens on the peers' host, on a port that nobody needs to know: it is
// registered at every start.
func (s *devSite) gossip() string {
	host, _, _ := net.SplitHostPort(s.Peer) // made by plan
	return net.JoinHostPort(host, "0")
}

// write writes the site's config.yaml. How it was founded does not stand in
// it: the next start is one on existing data.
func (s *devSite) write() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder of %s: %w", s.Name, err)
	}
	text := fmt.Sprintf(`# Written by cloudshare dev.
site: %s
data_dir: %q
http: %s
peer: %s
gossip: %s
cores: %d
stop_tasks: true
stop_wait: 8s
%s%s`, s.Name, s.file("data"), s.HTTP, s.Peer, s.gossip(), s.Cores, s.backend, s.sandbox)
	if err := os.WriteFile(s.file("config.yaml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration of %s: %w", s.Name, err)
	}
	return nil
}

// launch starts the site's broker. A fresh one founds the federation, or joins by the invitation in its folder.
func (s *devSite) launch(founds, detached bool) error {
	if err := s.write(); err != nil {
		return err
	}
	if err := s.writeToken(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	out, err := os.OpenFile(s.file("broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", s.Name, err)
	}
	defer out.Close() // the child has its own
	cmd := exec.Command(self, "broker", "--config", s.file("config.yaml"))
	cmd.Env = append(brokerEnv(os.Environ()), s.founding(founds)...)
	cmd.Stdout, cmd.Stderr = out, out
	// Its own group or session: a Ctrl-C is for dev, which then ends its children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !detached, Setsid: detached}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start broker of %s: %w", s.Name, err)
	}
	s.child = awaitExit(cmd)
	if err := os.WriteFile(s.file("broker.pid"), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		return fmt.Errorf("write pid of %s: %w", s.Name, err)
	}
	return nil
}

// ownKeys are what dev decides for each site, in its config.yaml or at its start:
// one value cannot be right for all. The others can be set in dev's environment.
var ownKeys = []string{
	"site", "data_dir", "http", "peer", "gossip", "cores", "bootstrap", "join", "stop_tasks", "stop_wait", "pprof",
	"coordination", "zk", "zk_auth", "zk_session",
}

// brokerEnv returns what a broker gets of this process's environment: all but what
// dev decides, and what is not for a broker.
func brokerEnv(env []string) []string {
	passed := map[string]bool{}
	for _, f := range config.Fields() {
		passed[f.Variable()] = !slices.Contains(ownKeys, f.Key)
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, config.EnvPrefix) && !passed[name]
	})
}

// pid of the site's broker if it runs, whoever started it; else 0.
func (s *devSite) pid() int {
	text, err := os.ReadFile(s.file("broker.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	for _, arg := range cmdline(pid) { // the number may be another process's by now
		if arg == s.file("config.yaml") {
			return pid
		}
	}
	return 0
}

// logTail returns the last lines of the broker's log, for an error message.
func (s *devSite) logTail(n int) string {
	text, err := os.ReadFile(s.file("broker.log"))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// validSiteDir checks a name before it becomes a path.
func validSiteDir(dataDir, name string) (string, error) {
	if !command.ValidSite(name) {
		return "", cli.Usage("site %q: must be lower-case letters, digits and '-'", name)
	}
	return filepath.Join(dataDir, name), nil
}
