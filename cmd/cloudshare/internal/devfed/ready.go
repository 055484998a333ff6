package devfed

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// errNotReady: the broker runs, but was not ready in time.
var errNotReady = errors.New("not ready")

// await returns once the site is ready, or says why it does not get so: its
// broker ended, or lives on (errNotReady). tell hears meanwhile what /readyz says.
func (s *devSite) await(ctx context.Context, patience time.Duration, tell func(why string)) error {
	c, err := client.New(s.HTTP)
	if err != nil {
		return err
	}
	defer c.Close()
	late := time.NewTimer(patience)
	defer late.Stop()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	heard := waitingFor{next: time.Now().Add(tellEvery)}
	for {
		cause := c.Ready(ctx)
		if cause == nil {
			return nil
		}
		why := unreadiness(cause)
		if heard.news(time.Now(), why) {
			tell(why)
		}
		select {
		case <-s.child.done:
			return s.ended()
		case <-ctx.Done():
			return fmt.Errorf("broker of %s: %w: %s; see %s", s.Name, context.Cause(ctx), why, s.file("broker.log"))
		case <-late.C:
			return fmt.Errorf("broker of %s: %w after %s: %s; see %s", s.Name, errNotReady, patience, why, s.file("broker.log"))
		case <-tick.C:
		}
	}
}

// ended returns the error of a broker that has ended before it was ready.
func (s *devSite) ended() error {
	code := cli.ExitError
	var exit *exec.ExitError
	if errors.As(s.child.err, &exit) && exit.ExitCode() == cli.ExitUsage {
		code = cli.ExitUsage
	}
	return cli.WithExit(code, fmt.Errorf("broker of %s ended (%s); the end of %s:\n%s",
		s.Name, s.child.how(), s.file("broker.log"), s.logTail(5)))
}

// unreadiness words why a broker is not ready.
func unreadiness(err error) string {
	var p *client.Problem
	switch {
	case errors.As(err, &p) && p.Detail != "":
		return strings.TrimRight(p.Detail, ".")
	case errors.Is(err, client.ErrUnreachable):
		return "it does not answer yet"
	}
	return err.Error()
}

// waitingFor says every few seconds what is waited for, if that is news.
type waitingFor struct {
	said string
	next time.Time
}

// news reports whether to say why at this moment.
func (w *waitingFor) news(now time.Time, why string) bool {
	if now.Before(w.next) {
		return false
	}
	w.next = now.Add(tellEvery)
	fresh := why != w.said
	w.said = why
	return fresh
}
