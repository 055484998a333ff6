package sitecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Patience of `leave`.
const (
	// leaveWait is the ten minutes of a leave, and time to hand back.
	leaveWait = 15 * time.Minute
	leavePoll = 200 * time.Millisecond
	// goneWait is how long others may take to hear that the site left, once
	// its own broker has ended.
	goneWait = 10 * time.Second
)

// drainWord words what a site takes on.
func drainWord(d wire.Drain) string {
	switch {
	case d.Own:
		return "yes, own work too"
	case d.Draining:
		return "yes"
	}
	return "no"
}

func drainCommand(a *cli.App) *cobra.Command {
	var own bool
	cmd := cli.ShowCommand(a, "drain", "Have a site take on nothing for others",
		"  cloudshare drain\n  cloudshare drain --own --addr http://127.0.0.1:7702",
		func(cmd *cobra.Command, c *client.Client) (wire.Drain, error) { return c.Drain(cmd.Context(), own) },
		func(w io.Writer, d wire.Drain) { cli.Row(w, "draining", drainWord(d)) })
	cmd.Long = `Have the site of the broker at --addr take on nothing for other sites, until
cloudshare resume; a restart does not end it. What runs there goes on, and the
site's own users go on using its machines, unless --own is given: then their
jobs, too, run elsewhere. To take a machine down: drain --own, and wait until
cloudshare sites shows nothing assigned and nothing at home.`
	cmd.Flags().BoolVar(&own, "own", false, "nothing for the site's own users either")
	return cmd
}

func resumeCommand(a *cli.App) *cobra.Command {
	return cli.ShowCommand(a, "resume", "End a drain", "  cloudshare resume",
		func(cmd *cobra.Command, c *client.Client) (wire.Drain, error) { return c.Resume(cmd.Context()) },
		func(w io.Writer, d wire.Drain) { cli.Row(w, "draining", drainWord(d)) })
}

// departure is what `leave` tells about the site.
type departure struct {
	Site  string `json:"site"`
	State string `json:"state"` // leaving, or left
}

func leaveCommand(a *cli.App) *cobra.Command {
	var now, forget, noWait bool
	cmd := cli.ShowCommand(a, "leave", "Take a site out of the federation",
		"  cloudshare leave\n  cloudshare leave --now --addr http://127.0.0.1:7702",
		func(cmd *cobra.Command, c *client.Client) (departure, error) {
			return leaveFederation(cmd.Context(), a, c, wire.LeaveRequest{Now: now, Forget: forget}, !noWait)
		},
		func(w io.Writer, d departure) { cli.Row(w, d.Site, d.State) })
	cmd.Long = `Take the site of the broker at --addr out of the federation, and end its broker.

The site takes on nothing more and waits up to 10 minutes for what runs there;
what then still runs is ended and goes back to the queue, without counting as a
loss. With --now that is done at once. The command waits until the site has
left; Ctrl-C stops the waiting, not the leaving.

The account of the site stays. Its own waiting jobs stay too, as withdrawn, and
the broker, started again on its data, comes back to them. With --forget they
end as lost, for good, and nobody can bring them back.`
	f := cmd.Flags()
	f.BoolVar(&now, "now", false, "end what runs there and hand it back at once")
	f.BoolVar(&forget, "forget", false, "end the site's own waiting jobs as lost, for good")
	f.BoolVar(&noWait, "no-wait", false, "return as soon as the leaving has begun")
	return cmd
}

// leaveFederation begins the leaving and, if asked, waits for its end.
func leaveFederation(
	ctx context.Context, a *cli.App, c *client.Client, how wire.LeaveRequest, wait bool,
) (departure, error) {
	status, err := c.Status(ctx, false)
	if err != nil {
		return departure{}, err
	}
	d := departure{status.Site, "leaving"}
	if _, err = c.Leave(ctx, how.Now, how.Forget); err != nil || !wait {
		return d, err
	}
	l := leaving{App: a, site: d.Site, poll: leavePoll, gone: goneWait}
	if err := l.wait(ctx, c); err != nil {
		return d, err
	}
	d.State = "left"
	return d, nil
}

// leaving follows a site's way out.
type leaving struct {
	*cli.App
	site       string
	poll, gone time.Duration
	last       string   // what was told
	others     []string // addresses of brokers that can tell how it ended
}

// wait returns once the site has left, or says why that is not known.
func (l *leaving) wait(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, leaveWait,
		fmt.Errorf("%s has not left after %s; see its broker's log", l.site, leaveWait))
	defer cancel()
	tick := time.NewTicker(l.poll)
	defer tick.Stop()
	for {
		sites, err := c.Sites(ctx)
		switch {
		case err == nil && l.showProgress(sites.Items) == "left":
			return nil
		case errors.Is(err, client.ErrUnreachable):
			return l.askOthers(ctx, tick.C)
		case err != nil && ctx.Err() == nil && !cli.IsPassing(err):
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// showProgress returns the site's state, and tells what still runs there if that has
// changed.
func (l *leaving) showProgress(sites []wire.Site) string {
	state := ""
	l.others = l.others[:0]
	for _, s := range sites {
		if s.ID != l.site {
			if s.State == "alive" {
				l.others = append(l.others, s.Addresses.HTTP)
			}
			continue
		}
		state = s.State
		text := fmt.Sprintf("%s leaves; %v cores still run for the federation, %v at home", s.ID, s.Assigned.CPU, s.Home.CPU)
		if state != "left" && text != l.last {
			l.Note("%s", text)
			l.last = text
		}
	}
	return state
}

// askOthers judges a broker that has ended: it left, unless another broker
// says for a while that the site is still a member. With nobody to ask its
// end is the sign.
func (l *leaving) askOthers(ctx context.Context, tick <-chan time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.gone,
		fmt.Errorf("the broker of %s ended before the site left; start it again and see its log", l.site))
	defer cancel()
	for {
		state := l.stateElsewhere(ctx)
		if state == "" && ctx.Err() == nil || state == "left" {
			return nil
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stateElsewhere returns the site's state as the first broker that answers sees it,
// "" if none does: one whose token is not at hand does not, either.
func (l *leaving) stateElsewhere(ctx context.Context) string {
	for _, addr := range l.others {
		c, err := l.ClientOf(addr)
		if err != nil {
			continue
		}
		sites, err := c.Sites(ctx)
		c.Close()
		if err != nil {
			continue
		}
		for _, s := range sites.Items {
			if s.ID == l.site {
				return s.State
			}
		}
	}
	return ""
}
