package guard

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// calls are the signals that a guard catches.
type calls struct {
	outside  chan os.Signal // from the kubelet, or whoever is in the container
	children chan os.Signal // children have ended; apart, so that no TERM is lost among them
	// stop and child ring in the loop's set.
	stop, child watchdog.Bell
}

func catchCalls() calls {
	c := calls{outside: make(chan os.Signal, 16), children: make(chan os.Signal, 1)}
	signal.Notify(c.outside, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	signal.Notify(c.children, unix.SIGCHLD)
	return c
}

func isStop(sig os.Signal) bool { return sig == unix.SIGTERM || sig == unix.SIGINT }

// wake has calls, and the end that the handler tells, wake a loop.
func (c *calls) wake(s *watchdog.Sources, end <-chan struct{}) (err error) {
	if c.child, err = s.Bell(watchdog.FromChild); err != nil {
		return err
	}
	if c.stop, err = s.Bell(watchdog.FromSignal); err != nil {
		return err
	}
	go c.ring(end)
	return nil
}

// ring rings for each of them, as long as the process lives.
func (c *calls) ring(end <-chan struct{}) {
	for {
		select {
		case sig := <-c.outside:
			if isStop(sig) {
				c.stop.Ring()
			}
		case <-c.children:
			c.child.Ring()
		case <-end:
			c.stop.Ring()
			end = nil
		}
	}
}
