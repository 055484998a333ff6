package membercmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// needless reports whether nobody has to be invited: the file of an earlier invitation is there, or the site is in.
func needless(ctx context.Context, a *cli.App, site, out string) (bool, error) {
	switch info, err := os.Stat(out); {
	case err == nil && info.Size() > 0:
		a.Note("%s is there already: nobody is invited", out)
		return true, nil
	case err == nil: // whoever made it was ended before there was a token
		if err = os.Remove(out); err != nil {
			return false, fmt.Errorf("replace an empty file: %w", err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return false, fmt.Errorf("look for the token's file: %w", err)
	}
	c, err := ready(ctx, a)
	if err != nil {
		return false, err
	}
	members, err := c.Members(ctx)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(members.Items, func(m wire.Member) bool { return m.Site == site }) {
		return false, nil
	}
	a.Note("%s is a member already: nobody is invited", site)
	return true, nil
}

// readyEvery is the time between two questions.
const readyEvery = 250 * time.Millisecond

// ready waits until the broker is, and has made its token: services start together, and a broker that is not registered
// yet can invite nobody.
func ready(ctx context.Context, a *cli.App) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	for {
		c, err := a.Client()
		if err == nil {
			err = c.Ready(ctx)
		}
		if err == nil || !cli.IsPassing(err) && !errors.Is(err, os.ErrNotExist) {
			return c, err
		}
		select {
		case <-time.After(readyEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("the broker is not ready to invite: %w", err)
		}
	}
}
