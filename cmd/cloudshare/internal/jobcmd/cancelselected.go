package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// selection is by what open jobs are cancelled that are not named.
type selection struct {
	user   string
	mine   bool // the user's who asks
	labels []string
}

// addFlags adds the flags by which jobs are selected, for what is done to them.
func (s *selection) addFlags(cmd *cobra.Command, verb string) {
	cmd.Flags().BoolVar(&s.mine, "mine", false, verb+" all your open jobs")
	cmd.Flags().StringVar(&s.user, "user", "", verb+" all open jobs of this `USER` of the broker's site")
	cmd.Flags().StringArrayVar(&s.labels, "label", nil, verb+" the open jobs with this `KEY=VALUE` (may be repeated)")
}

// check refuses arguments that name no jobs, or in two ways.
func (s *selection) check(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("user") && s.user == "" { // with labels it would mean whoever's
		return fmt.Errorf("--user: is empty")
	}
	if (len(args) > 0) == s.given() || s.mine && s.user != "" {
		return fmt.Errorf("name jobs, or --label, --mine or --user: one of them")
	}
	return nil
}

// given reports whether jobs are selected at all.
func (s *selection) given() bool { return s.mine || s.user != "" || len(s.labels) > 0 }

// says words how many jobs were cancelled.
func (s *selection) says(n int) string {
	which := ""
	if s.user != "" {
		which += " of " + s.user
	}
	if len(s.labels) > 0 {
		which += " with " + strings.Join(s.labels, " and ")
	}
	switch n {
	case 0:
		return "no open job" + which + " was cancelled"
	case 1:
		return "1 open job" + which + " was cancelled"
	}
	return fmt.Sprintf("%d open jobs%s were cancelled", n, which)
}

// maxVain is how often the jobs of a selection are asked for when no others come.
const maxVain = 3

// cancel cancels the jobs of the selection until there are no others. A broker may
// name one again that takes a while to be stopped.
func (s *selection) cancel(ctx context.Context, c *client.Client, out *wire.Cancelled) error {
	if err := s.findUser(ctx, c); err != nil {
		return err
	}
	told := map[string]bool{}
	return s.repeat(ctx, func() (news, more bool, err error) {
		part, err := c.CancelSelected(ctx, s.user, s.labels)
		for _, item := range part.Items {
			if !told[item.Job] {
				news, told[item.Job] = true, true
				out.Items = append(out.Items, item)
			}
		}
		return news, part.More, err
	})
}

// repeat asks until there are no others: each time for up to 1000 jobs, among which may be news.
func (s *selection) repeat(ctx context.Context, ask func() (news, more bool, err error)) error {
	for vain := 0; vain < maxVain; {
		news, more, err := ask()
		switch {
		case err != nil || !more:
			return err
		case news:
			continue
		}
		vain++
		if err = cli.Sleep(ctx, pollMost); err != nil {
			return err
		}
	}
	return cli.WithExit(cli.ExitRefused, errors.New("there are more jobs like these: try again once those shown have ended"))
}

// findUser asks whose --mine are: of no user there are the site's own jobs, which nobody means by it.
func (s *selection) findUser(ctx context.Context, c *client.Client) error {
	if !s.mine {
		return nil
	}
	who, err := c.Whoami(ctx)
	if err == nil && who.User == "" {
		return cli.Usage("--mine: who asks is no user but the site's own (cloudshare whoami): name jobs, or --user")
	}
	s.user = who.User
	return err
}
