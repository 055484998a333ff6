package devfed

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Patience of dev.
const (
	readyWait = 60 * time.Second
	readyPoll = 50 * time.Millisecond
	tellEvery = 3 * time.Second
	termWait  = 10 * time.Second // TERM to KILL of a broker; above its stop_wait
)

// child is a broker that dev started, reaped by its own goroutine.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended; err is set before
	err  error
}

func awaitExit(cmd *exec.Cmd) *child {
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
	if err := d.launchAll(ctx, members, true); err != nil {
		return err
	}
	for _, s := range joiners {
		if err := s.write(); err != nil {
			return err
		}
		if err := invite(ctx, members, s); err != nil {
			return err
		}
	}
	if err := d.launchAll(ctx, joiners, false); err != nil {
		return err
	}
	return elect(ctx, sites)
}

// launchAll starts the sites and waits until each is ready, or known not to get
// so. One that fails stops the others only if it is the only one.
func (d *dev) launchAll(ctx context.Context, sites []*devSite, found bool) error {
	for _, s := range sites {
		if err := s.launch(found, false); err != nil {
			return err
		}
	}
	errs := d.awaitAll(ctx, sites)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := 0
	for i, s := range sites {
		if errs[i] == nil || errors.Is(errs[i], errNotReady) {
			go d.report(ctx, s)
		}
		if errs[i] != nil {
			failed++
		}
	}
	if failed > 0 && failed == len(sites) {
		return errs[0]
	}
	for i, err := range errs {
		if err != nil {
			d.Note("%s; the others go on. Once mended: cloudshare dev start %s --data-dir %s", err, sites[i].Name, d.dataDir)
		}
	}
	return nil
}

// awaitAll waits for all sites at a time; the errors are in their order.
func (d *dev) awaitAll(ctx context.Context, sites []*devSite) []error {
	var all sync.WaitGroup
	var told sync.Mutex
	errs := make([]error, len(sites))
	for i, s := range sites {
		all.Go(func() {
			errs[i] = s.await(ctx, readyWait, func(why string) {
				told.Lock()
				defer told.Unlock()
				d.Note("waiting for %s: %s", s.Name, why)
			})
		})
	}
	all.Wait()
	return errs
}

// report tells of a broker that ended while dev goes on: it stays down.
func (d *dev) report(ctx context.Context, s *devSite) {
	select {
	case <-ctx.Done():
	case <-s.child.done:
		if ctx.Err() == nil {
			d.Note("%s ended (%s) and stays down; start it again: cloudshare dev start %s --data-dir %s",
				s.Name, s.child.how(), s.Name, d.dataDir)
		}
	}
}

// stopSites stops every broker of the folder, also those that `dev start` started,
// and then what is left of their tasks: a killed broker's go on by themselves.
func (d *dev) stopSites(sites []*devSite) {
	var all sync.WaitGroup
	for _, s := range sites {
		all.Go(s.stop)
	}
	all.Wait()
	if left := endTasks(d.dataDir); left > 0 {
		d.Note("%d processes of tasks could not be ended", left)
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
