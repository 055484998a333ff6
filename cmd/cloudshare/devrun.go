package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
)

// Patience of dev.
const (
	readyWait = 60 * time.Second
	readyPoll = 50 * time.Millisecond
	termWait  = 10 * time.Second // TERM to KILL of a broker; above its stop_wait
)

// child is a broker that dev started, reaped by its own goroutine.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended; err is set before
	err  error
}

func watch(cmd *exec.Cmd) *child {
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c
}

// how says how it ended. REQUIRES: done is closed.
func (c *child) how() string {
	if c.err == nil {
		return "exit status 0"
	}
	return c.err.Error()
}

// start brings the sites up: those with data together, for they need each
// other for a quorum, then the founder if there is none, then those that join.
func (d *dev) start(ctx context.Context, sites []*devSite) error {
	var members, joiners []*devSite
	for _, s := range sites {
		if s.fresh {
			joiners = append(joiners, s)
		} else {
			members = append(members, s)
		}
	}
	if len(members) == 0 {
		members, joiners = joiners[:1], joiners[1:]
	}
	if err := d.launchAll(ctx, members, nil); err != nil {
		return err
	}
	var peers []string
	for _, s := range members {
		peers = append(peers, s.Peer)
	}
	return d.launchAll(ctx, joiners, peers)
}

// launchAll starts the sites and waits until each is ready.
func (d *dev) launchAll(ctx context.Context, sites []*devSite, peers []string) error {
	for _, s := range sites {
		if err := s.launch(peers, false); err != nil {
			return err
		}
	}
	for _, s := range sites {
		if err := s.await(ctx); err != nil {
			return err
		}
		go d.report(ctx, s)
	}
	return nil
}

// report tells of a broker that ended while dev goes on: it stays down.
func (d *dev) report(ctx context.Context, s *devSite) {
	select {
	case <-ctx.Done():
	case <-s.child.done:
		if ctx.Err() == nil {
			d.note("%s ended (%s) and stays down; start it again: cloudshare dev start %s --data-dir %s",
				s.Name, s.child.how(), s.Name, d.dataDir)
		}
	}
}

// await returns once the site is ready, or says why it does not get so.
func (s *devSite) await(ctx context.Context) error {
	c, err := client.New(s.HTTP)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, readyWait, fmt.Errorf("not ready after %s", readyWait))
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		last := c.Ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-s.child.done:
			code := exitError
			var exit *exec.ExitError
			if errors.As(s.child.err, &exit) && exit.ExitCode() == exitUsage {
				code = exitUsage
			}
			return &exitCode{code, fmt.Errorf("broker of %s ended (%s); the end of %s:\n%s",
				s.Name, s.child.how(), s.file("broker.log"), s.logTail(5))}
		case <-ctx.Done():
			return fmt.Errorf("broker of %s: %w: %w; see %s", s.Name, context.Cause(ctx), last, s.file("broker.log"))
		case <-tick.C:
		}
	}
}

// end stops every broker of the folder, also those that `dev start` started,
// and then what is left of their tasks: a killed broker's go on by themselves.
func (d *dev) end(sites []*devSite) {
	var all sync.WaitGroup
	for _, s := range sites {
		all.Go(s.stop)
	}
	all.Wait()
	if left := endTasks(d.dataDir); left > 0 {
		d.note("%d processes of tasks could not be ended", left)
	}
}

// stop ends the broker: TERM, a while, KILL.
func (s *devSite) stop() {
	pid := s.pid()
	if pid == 0 {
		return
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if syscall.Kill(pid, sig) != nil {
			return // gone
		}
		if await(termWait, func() bool { return s.pid() == 0 }) {
			return
		}
	}
}

// await polls a condition of another process.
func await(most time.Duration, done func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(most); !done(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
