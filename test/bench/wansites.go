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
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// Bounds of far brokers.
const (
	farReady = time.Minute      // until one is ready
	farWhole = 3 * time.Minute  // until all vote: the WAN profile waits for half a minute twice
	farStop  = 20 * time.Second // until all have stopped
)

// farSite is one broker on a host of its own.
type farSite struct {
	*testbed.Site

	host  *netlab.Host
	port  int           // of the API; the next ones are for brokers and for gossip
	nice  int           // by how much its broker comes behind this process for the cores
	ended chan struct{} // closed when the broker has ended
}

// newFarSite returns a site of a host that has not been configured.
func newFarSite(dir string, number int, h *netlab.Host, port int) *farSite {
	name := "site-" + strconv.Itoa(number)
	return &farSite{host: h, port: port, Site: &testbed.Site{
		Name: name, Dir: filepath.Join(dir, name), TokenPath: filepath.Join(dir, name, "data", "token"),
		URL: &url.URL{Scheme: "http", Host: net.JoinHostPort(h.Addr, strconv.Itoa(port))},
		HTTP: &http.Client{
			Timeout: answerLimit, Transport: &http.Transport{DialContext: h.Dial, MaxIdleConnsPerHost: 512},
		},
		Dial: h.Dial,
	}}
}

// at returns an address of the site, so many ports behind its API's.
func (s *farSite) at(offset int) string {
	return net.JoinHostPort(s.host.Addr, strconv.Itoa(s.port+offset))
}

// farSites are a federation over links. They are testbed's as far as they are only asked.
type farSites struct {
	testbed.Federation

	lab     *netlab.Lab
	list    []*farSite
	dir     string
	binary  string
	profile string
	cores   int
}

// openFarSites founds a federation in which each site votes, on links without delay. There is a host for one more site.
func openFarSites(ctx context.Context, env environment, sites, cores int, profile string) (*farSites, error) {
	lab, err := netlab.New(sites + 1)
	if err != nil {
		return nil, err
	}
	f := &farSites{lab: lab, dir: filepath.Join(env.dir, "far"), binary: env.binary, profile: profile, cores: cores}
	for range sites {
		if _, err := f.add(); err != nil {
			return nil, errors.Join(err, lab.Close())
		}
	}
	if err := f.found(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// add makes the site of the next host; its broker does not run.
func (f *farSites) add() (*farSite, error) {
	s := newFarSite(f.dir, len(f.list)+1, f.lab.Hosts[len(f.list)], 7700)
	return s, f.enter(s)
}

// enter configures a site, which is the newest one then.
func (f *farSites) enter(s *farSite) error {
	f.list, f.Sites = append(f.list, s), append(f.Sites, s.Site)
	return f.configure(s)
}

// joinOneMore has one more site join, beside those that vote.
func (f *farSites) joinOneMore(ctx context.Context) error {
	electors := slices.Clone(f.Sites)
	s, err := f.add()
	if err != nil {
		return err
	}
	way, err := f.list[0].InviteFile(ctx, f.list[0].Dir, s.Name, electors...)
	if err != nil {
		return err
	}
	return errors.Join(f.launch(s, way...), f.awaitWhole(ctx))
}

// configure writes a site's configuration. Tasks run without sandboxes: links are measured.
func (f *farSites) configure(s *farSite) error {
	lines := []string{
		"site: " + s.Name, "data_dir: " + filepath.Join(s.Dir, "data"), "profile: " + f.profile, "cores: " + strconv.Itoa(f.cores),
		"http: " + s.at(0), "peer: " + s.at(1), "gossip: " + s.at(2),
		"insecure: true", "stop_tasks: true", "sandbox: {tasks: \"off\"}", "rates: {connections: 0}",
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder of %s: %w", s.Name, err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write configuration of %s: %w", s.Name, err)
	}
	return nil
}

// found has the first site let all others in, and waits until all vote.
func (f *farSites) found(ctx context.Context) error {
	if err := errors.Join(f.launch(f.list[0], "--bootstrap"), f.awaitReady(ctx, f.list[0])); err != nil {
		return err
	}
	var ways [][]string
	for _, s := range f.list[1:] {
		way, err := f.list[0].InviteFile(ctx, f.list[0].Dir, s.Name)
		if err != nil {
			return err
		}
		ways = append(ways, way)
	}
	for i, s := range f.list[1:] {
		if err := f.launch(s, ways[i]...); err != nil {
			return err
		}
	}
	return f.awaitWhole(ctx)
}

// awaitWhole waits until all are ready and follow one leader, and as many vote as may.
func (f *farSites) awaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, farWhole)
	defer cancel()
	return awaitWholeUntil(ctx, &f.Federation)
}

// launch starts a broker; it does not wait until it is ready.
func (f *farSites) launch(s *farSite, args ...string) error {
	log, err := os.OpenFile(filepath.Join(s.Dir, "broker.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", s.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(f.binary, append([]string{"broker", "--config", filepath.Join(s.Dir, "config.yaml")}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	// A terminal's ^C goes to the bench, which ends the brokers itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.start(cmd); err != nil {
		return fmt.Errorf("start broker of %s: %w", s.Name, err)
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	pid := []byte(strconv.Itoa(cmd.Process.Pid) + "\n")
	if err := os.WriteFile(filepath.Join(s.Dir, "broker.pid"), pid, 0o600); err != nil {
		return fmt.Errorf("write pid of %s: %w", s.Name, err)
	}
	return nil
}

// start starts a command in the site's host. A process has the priority of the thread that makes it, the host's.
func (s *farSite) start(cmd *exec.Cmd) error {
	if s.nice == 0 {
		return s.host.Start(cmd)
	}
	own := 0
	err := s.host.Do(func() (err error) {
		if own, err = syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil {
			return err
		}
		own = 20 - own // as the system call tells it
		return syscall.Setpriority(syscall.PRIO_PROCESS, 0, own+s.nice)
	})
	if err != nil {
		return fmt.Errorf("set a priority: %w", err)
	}
	err = s.host.Start(cmd)
	return errors.Join(err, s.host.Do(func() error { return syscall.Setpriority(syscall.PRIO_PROCESS, 0, own) }))
}

func (f *farSites) awaitReady(ctx context.Context, s *farSite) error {
	ctx, cancel := context.WithTimeout(ctx, farReady)
	defer cancel()
	err := testbed.Await(ctx, s.Name+" ready", func() error { return s.Ready(ctx) })
	if err != nil {
		return fmt.Errorf("%w\n%s", err, s.LogTail(15))
	}
	return nil
}

// again starts a killed broker and waits until the federation is whole.
func (f *farSites) again(ctx context.Context, s *testbed.Site) error {
	if err := f.launch(f.list[f.number(s)]); err != nil {
		return err
	}
	return f.awaitWhole(ctx)
}

// number of a site, from 0.
func (f *farSites) number(s *testbed.Site) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(s.Name, "site-")) // the names are ours
	return n - 1
}

// lay lays links around the leader, waits until the sites have found each other over them,
// and measures them. It returns who leads, and the others by their place.
func (f *farSites) lay(ctx context.Context, l layout) (lead *testbed.Site, others []*testbed.Site, p paths, err error) {
	if lead, _, err = leadAndOthers(ctx, &f.Federation); err != nil {
		return nil, nil, nil, err
	}
	places := l.settle(len(f.list), f.number(lead))
	if err = f.lab.SetRoundTrips(1, l.roundTrips(places), l.rest); err != nil {
		return nil, nil, nil, err
	}
	if p, err = measurePaths(ctx, f.lab.Hosts[:len(f.list)]); err != nil {
		return nil, nil, nil, err
	}
	if err = f.awaitWhole(ctx); err != nil {
		return nil, nil, nil, err
	}
	now, others, err := leadAndOthers(ctx, &f.Federation)
	if err == nil && now != lead {
		err = fmt.Errorf("lay links of %s: %s leads now, no longer %s", l.name, now.Name, lead.Name)
	}
	return lead, others, p, err
}

// close stops all brokers at once and takes the hosts away.
func (f *farSites) close() error {
	var errs []error
	for _, s := range f.list {
		if s.ended != nil {
			_ = s.Signal(syscall.SIGTERM) // it may have ended
		}
	}
	limit := time.After(farStop)
	for _, s := range f.list {
		if s.ended == nil {
			continue
		}
		select {
		case <-s.ended:
		case <-limit:
			errs = append(errs, fmt.Errorf("%s ran %s after SIGTERM\n%s", s.Name, farStop, s.LogTail(10)))
			_ = s.Signal(syscall.SIGKILL)
			<-s.ended
			limit = time.After(0)
		}
	}
	return errors.Join(append(errs, f.lab.Close())...)
}
