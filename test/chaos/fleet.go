package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// Ports of every broker: each has an address of its own.
const (
	httpPort   = 7700
	peerPort   = 7701
	gossipPort = 7702
)

// Patience with a broker.
const (
	answerWait = 10 * time.Second // for one answer
	readyWait  = 40 * time.Second
	stopWait   = 20 * time.Second
)

// fleetOptions say what runs.
type fleetOptions struct {
	binary string
	dir    string
	sites  int
	guests int // how many of them, the last ones, do not join at the start
	// hostile is the number of the site that turns against the others, 0 = none; hostileBinary is what it runs.
	hostile       int
	hostileBinary string
	cores         int
	zk            bool     // the log is on a ZooKeeper server, on a host of its own
	disks         bool     // each site's data are on a disk that can lose power
	slow          bool     // each site's disk can be made slow
	slowfs        string   // the program for that
	far           bool     // the sites are in different places once the federation is whole; see far.go
	seed          uint64   // of what the links between them lose and hold up
	lines         []string // more lines of every broker's configuration
	env           []string // more of every broker's environment
}

// fleet is a federation of brokers, each on a host of the lab.
type fleet struct {
	fleetOptions

	lab     *netlab.Lab
	members []*member
	server  *ensemble.Ensemble // nil on Raft
}

// member is one site: its host, its broker and its disk.
type member struct {
	*testbed.Site

	host  *netlab.Host
	disk  *disk     // nil: its data are on this machine's
	slow  *slowDisk // nil: its syncs take as long as they take
	opts  *fleetOptions
	place place // where its broker listens; changes only while that is down
	ended chan<- string
	env   []string // more of the broker's environment than all have

	binary  string // what it runs
	hostile bool   // it is of the build that can turn against the others; see hostile.go

	forked  atomic.Bool            // its state is another one on purpose
	read    atomic.Pointer[[]byte] // the token
	mu      sync.Mutex
	broker  *process // nil: never started
	expects bool     // the end of the broker is wanted
}

// readOnce reads the site's token where its broker sees its disk, and never again: that may have no power.
func (m *member) readOnce(path string) (text []byte, err error) {
	if known := m.read.Load(); known != nil {
		return *known, nil
	}
	cause := m.host.Do(func() error {
		text, err = os.ReadFile(path)
		return nil
	})
	if err == nil && cause == nil && len(text) > 0 {
		m.read.Store(&text)
	}
	return text, errors.Join(err, cause)
}

// process is a broker that was started; done is closed when it has ended.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// newFleet makes hosts and folders; nothing runs yet. Brokers that end by
// themselves are told of on ended, which must have room.
func newFleet(ctx context.Context, opts fleetOptions, ended chan<- string) (*fleet, error) {
	hosts := opts.sites + 1 // the last is a stranger's
	if opts.zk {
		hosts++
	}
	lab, err := netlab.New(hosts)
	if err != nil {
		return nil, err
	}
	f := &fleet{fleetOptions: opts, lab: lab}
	if opts.zk {
		if err := f.startZooKeeper(ctx, lab.Hosts[opts.sites]); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	if err := f.nameHosts(); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	for i, h := range lab.Hosts[:opts.sites] {
		name := "site-" + strconv.Itoa(i+1)
		m := &member{
			Site: &testbed.Site{
				Name: name, Dir: filepath.Join(opts.dir, name), TokenPath: filepath.Join(opts.dir, name, "data", "token"),
				URL: &url.URL{Scheme: "http", Host: address(h, httpPort)},
				HTTP: &http.Client{Timeout: answerWait, Transport: &http.Transport{
					DialContext:         h.Dial,
					MaxIdleConnsPerHost: 8,
				}},
			},
			host: h, opts: &f.fleetOptions, place: home, ended: ended, binary: opts.binary,
		}
		if opts.hostile == i+1 {
			m.binary, m.hostile = opts.hostileBinary, true
			m.env = []string{"HOSTILE_LEADER=" + m.hostility()}
		}
		m.Read = m.readOnce
		f.members = append(f.members, m)
		if err := m.prepare(ctx); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	return f, nil
}

// startZooKeeper runs the server that has the log. Who is cut off from everybody is
// cut off from it.
func (f *fleet) startZooKeeper(ctx context.Context, h *netlab.Host) error {
	dir := filepath.Join(f.dir, "zookeeper")
	var err error
	f.server, err = ensemble.New(ensemble.Config{
		Dir: dir, Servers: 1, Tick: 500 * time.Millisecond, HeapMiB: 256, Flags: ensemble.Brief,
		Host: h.Addr, Run: h.Start, Dial: h.Dial,
	})
	if err != nil {
		return err
	}
	digest := filepath.Join(dir, "digest")
	if err := os.WriteFile(digest, []byte("chaos:chaos\n"), 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	f.lines = append(slices.Clone(f.lines), "coordination: zookeeper", "zk: "+f.server.Addrs()+"/chaos", "zk_auth: "+digest, "zk_session: 2s", "zk_insecure: true")
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	return f.server.Start(ctx)
}

// stranger returns a host that is no site's.
func (f *fleet) stranger() *netlab.Host { return f.lab.Hosts[len(f.lab.Hosts)-1] }

func address(h *netlab.Host, port int) string { return net.JoinHostPort(h.Addr, strconv.Itoa(port)) }

// prepare makes the site's folder and configuration.
func (m *member) prepare(ctx context.Context) error {
	data := m.data()
	below := data
	if m.opts.slow {
		below = filepath.Join(m.Dir, "below")
	}
	if err := errors.Join(os.MkdirAll(data, 0o700), os.MkdirAll(below, 0o700)); err != nil {
		return fmt.Errorf("make folder of %s: %w", m.Name, err)
	}
	if m.opts.disks {
		var err error
		if m.disk, err = newDisk(ctx, m.host, filepath.Join(m.Dir, "disk"), below); err != nil {
			return err
		}
	}
	if m.opts.slow {
		var err error
		if m.slow, err = newSlowDisk(m.host, m.opts.slowfs, below, data); err != nil {
			return err
		}
	}
	return m.configure()
}

func (m *member) data() string { return filepath.Join(m.Dir, "data") }

// configure writes the site's configuration.
func (m *member) configure() error {
	lines := append([]string{
		"site: " + m.Name,
		"data_dir: " + m.data(),
		"http: " + address(m.host, httpPort),
		"peer: " + address(m.host, m.place.peer),
		"gossip: " + address(m.host, m.place.gossip),
		"advertise: " + strconv.Quote(m.place.advertise),
		"cores: " + strconv.Itoa(m.opts.cores),
		"insecure: true",
		"stop_tasks: true",
	}, m.opts.lines...)
	text := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(m.config(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration of %s: %w", m.Name, err)
	}
	return nil
}

func (m *member) config() string { return filepath.Join(m.Dir, "config.yaml") }

// start brings all brokers but guests up: the first founds, and invites the others while it decides alone.
func (f *fleet) start(ctx context.Context) error {
	founder := f.members[0]
	err := founder.launch("--bootstrap")
	if err == nil {
		err = founder.awaitReady(ctx)
	}
	if err != nil {
		return err
	}
	members := f.members[:f.sites-f.guests]
	ways := make([][]string, len(members))
	for i, m := range members[1:] {
		if ways[i+1], err = f.invite(ctx, m.Name); err != nil {
			return err
		}
	}
	for i, m := range members[1:] {
		if err = m.launch(ways[i+1]...); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err = m.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// invite has the founder let a site in.
func (f *fleet) invite(ctx context.Context, name string) ([]string, error) {
	return f.members[0].InviteFile(ctx, f.members[0].Dir, name)
}

// launch starts the broker; it does not wait until it is ready.
func (m *member) launch(args ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broker != nil && !m.broker.over() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(m.Dir, "broker.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", m.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(m.binary, append([]string{"broker", "--config", m.config()}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.Concat(cleanEnv(os.Environ()), m.opts.env, m.env)
	// A terminal's ^C goes to the run, which ends the brokers itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.host.Start(cmd); err != nil {
		return fmt.Errorf("start broker of %s: %w", m.Name, err)
	}
	p := &process{cmd, make(chan struct{})}
	m.broker, m.expects = p, false
	go m.reap(p)
	pid := strconv.Itoa(cmd.Process.Pid) + "\n"
	if err := os.WriteFile(filepath.Join(m.Dir, "broker.pid"), []byte(pid), 0o600); err != nil {
		return fmt.Errorf("write pid of %s: %w", m.Name, err)
	}
	return nil
}

// cleanEnv keeps settings of this process's own broker, if it has one, away.
func cleanEnv(env []string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "CLOUDSHARE_") {
			out = append(out, kv)
		}
	}
	return out
}

// reap waits for the end and tells of one that nobody wanted.
func (m *member) reap(p *process) {
	err := p.cmd.Wait()
	m.mu.Lock()
	expected := m.expects
	m.mu.Unlock()
	close(p.done)
	if !expected && !m.hostile {
		m.ended <- fmt.Sprintf("the broker of %s ended by itself (%v)\n%s", m.Name, err, m.LogTail(15))
	}
}

func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end signals the broker and waits until it is gone, in the end by force.
func (m *member) end(sig syscall.Signal) error {
	m.mu.Lock()
	p := m.broker
	m.expects = true
	m.mu.Unlock()
	if p == nil || p.over() {
		return nil
	}
	_ = p.cmd.Process.Signal(sig)             // it may have ended by now
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a stopped one takes only KILL
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("the broker of %s did not end within %s of %s", m.Name, stopWait, sig)
	}
}

// began reports whether the broker was ever started: a guest's is not before it joins.
func (m *member) began() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broker != nil
}

// up reports whether the broker's process runs or is stopped.
func (m *member) up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broker != nil && !m.broker.over()
}

// awaitReady waits for /readyz.
func (m *member) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWait, fmt.Errorf("not ready within %s", readyWait))
	defer cancel()
	err := testbed.Await(ctx, m.Name+" ready", func() error {
		if !m.up() {
			return testbed.Final(errors.New("its broker has ended"))
		}
		return m.Ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, m.LogTail(15))
	}
	return nil
}

// unmount takes what the site's data are on away.
func (m *member) unmount() error {
	var errs []error
	if m.slow != nil {
		errs = append(errs, m.slow.close())
	}
	if m.disk != nil {
		errs = append(errs, m.disk.close())
	}
	return errors.Join(errs...)
}

// stop ends everything and lets go of hosts and disks.
func (f *fleet) stop() error {
	errs := make([]error, len(f.members))
	var all sync.WaitGroup
	for i, m := range f.members {
		all.Go(func() {
			if m.slow != nil {
				errs[i] = m.slow.set(0)
			}
			errs[i] = errors.Join(errs[i], m.end(syscall.SIGTERM))
			left, err := killUnder(m.Dir)
			errs[i] = errors.Join(errs[i], err)
			if left > 0 {
				errs[i] = errors.Join(errs[i], fmt.Errorf("%d processes of %s outlived an orderly stop", left, m.Name))
			}
			errs[i] = errors.Join(errs[i], m.unmount())
		})
	}
	all.Wait()
	if f.server != nil {
		f.server.Stop()
	}
	return errors.Join(errors.Join(errs...), f.lab.Close())
}
