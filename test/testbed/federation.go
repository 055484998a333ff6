// Package testbed runs a federation of real broker processes on this machine
// for the whole-system tests (test/e2e) and the figures (test/bench).
//
// It walks all eight steps of a job's way from outside: it starts the binary
// as a user would and talks to it over HTTP with its own few types, written
// from the API's contract, so that a mistake in the product's client cannot
// hide one in its server. It imports nothing of the product but the choice of ports.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// Options of a federation.
type Options struct {
	Binary string // path of the cloudshare binary
	Dir    string // data of all sites; kept by the caller
	Sites  int
	Cores  int // of each site
	// Coordination is where the log is; empty means raft.
	Coordination string
	// ZK and ZKAuth name an ensemble for it; empty lets the product start one.
	ZK, ZKAuth string
	// Env are further variables of the brokers, NAME=VALUE.
	Env []string
	// StartTimeout until every site is ready; 0 means a minute.
	StartTimeout time.Duration
}

// Federation is `cloudshare dev` with its sites. Its methods are not safe for
// concurrent use; those of Site are.
type Federation struct {
	Sites     []*Site
	opts      Options
	dev       *child
	restarted []*child // `dev start` commands, ended or not
	stop      sync.Once
	stopErr   error
}

// Start runs `cloudshare dev` and returns when every site is ready.
func Start(ctx context.Context, opts Options) (*Federation, error) {
	if opts.StartTimeout == 0 {
		opts.StartTimeout = time.Minute
	}
	port, err := ensemble.FreePorts("127.0.0.1", 3*opts.Sites)
	if err != nil {
		return nil, err
	}
	f := &Federation{opts: opts}
	for i := range opts.Sites {
		name := "site-" + strconv.Itoa(i+1)
		f.Sites = append(f.Sites, &Site{
			Name: name,
			URL:  &url.URL{Scheme: "http", Host: hostPort(port + i)},
			Dir:  filepath.Join(opts.Dir, name),
		})
	}
	args := []string{
		"dev", "--sites", strconv.Itoa(opts.Sites), "--http", hostPort(port), "--cores", strconv.Itoa(opts.Cores), "--data-dir", opts.Dir,
	}
	if opts.Coordination != "" {
		args = append(args, "--coordination", opts.Coordination)
	}
	if opts.ZK != "" {
		args = append(args, "--zk", opts.ZK, "--zk-auth", opts.ZKAuth)
	}
	f.dev, err = f.command("dev", args...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	err = f.awaitReady(ctx, f.dev, f.Sites...)
	if err == nil {
		err = f.awaitAnnounced(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// Restart starts the brokers of killed sites again and waits until all are
// ready. They are started together: one alone may have no quorum.
func (f *Federation) Restart(ctx context.Context, sites ...*Site) error {
	var started []*child
	for _, s := range sites {
		c, err := f.command("start-"+s.Name, "dev", "start", s.Name, "--data-dir", f.opts.Dir)
		if err != nil {
			return err
		}
		started = append(started, c)
		f.restarted = append(f.restarted, c)
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.StartTimeout)
	defer cancel()
	for i, s := range sites {
		if err := f.awaitReady(ctx, started[i], s); err != nil {
			return err
		}
		// The command ends by itself; the broker goes on.
		if err := started[i].await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the brokers and their tasks, by force if need be. It is idempotent.
func (f *Federation) Stop() error {
	f.stop.Do(func() {
		for _, c := range append(f.restarted, f.dev) {
			c.signal(syscall.SIGTERM)
		}
		for _, c := range append(f.restarted, f.dev) {
			f.stopErr = errors.Join(f.stopErr, c.wait(20*time.Second))
		}
		for _, s := range f.Sites {
			// What is left after an orderly end is a fault, except a broker
			// that `dev start` left running on its own.
			if s.Alive() {
				_ = s.Signal(syscall.SIGTERM)
				if s.awaitGone(10*time.Second) != nil {
					f.stopErr = errors.Join(f.stopErr, fmt.Errorf("%s outlived SIGTERM", s.Name), s.Kill())
				}
			}
		}
		f.stopErr = errors.Join(f.stopErr, noneLeft(f.opts.Dir))
	})
	return f.stopErr
}

// awaitReady waits for /readyz of the sites; a failed command ends the wait.
func (f *Federation) awaitReady(ctx context.Context, c *child, sites ...*Site) error {
	for _, s := range sites {
		err := Await(ctx, s.Name+" ready", func() error {
			if err := c.failed(); err != nil {
				return Final(err)
			}
			return s.Ready(ctx)
		})
		if err != nil {
			return fmt.Errorf("%w\n%s\n%s", err, c.output(), s.LogTail(20))
		}
	}
	return nil
}

// awaitAnnounced waits until dev has told the last site's address: until then
// it takes a site's end for a failed start.
func (f *Federation) awaitAnnounced(ctx context.Context) error {
	last := f.Sites[len(f.Sites)-1].URL.String()
	return Await(ctx, "the addresses from dev", func() error {
		out, err := os.ReadFile(f.dev.file)
		if err == nil && !strings.Contains(string(out), last) {
			err = fmt.Errorf("no %s in its output", last)
		}
		return err
	})
}

// command starts the binary with its output in a file of the data folder.
func (f *Federation) command(name string, args ...string) (*child, error) {
	out, err := os.Create(filepath.Join(f.opts.Dir, name+".out"))
	if err != nil {
		return nil, fmt.Errorf("create output file: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(f.opts.Binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(append(os.Environ(), f.opts.Env...), configHome(f.opts.Dir))
	// A terminal's ^C goes to the test, which ends the federation itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", f.opts.Binary, err)
	}
	return watch(cmd, out.Name()), nil
}
