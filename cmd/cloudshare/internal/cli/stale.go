package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// freshness is what a reading command asks of the state's age, and what it heard.
type freshness struct {
	most  string            // --max-staleness, "" = any age
	stale *client.Staleness // of the last answer that was stale; nil = none
}

// Readable gives a command that reads the federation's state --max-staleness, and
// has it note on stderr that what it showed is not of now.
func (a *App) Readable(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.fresh.most, "max-staleness", "", "refuse what is older than this `AGE`, e.g. 5s; 0: have the leader confirm now that it is current")
	read := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error {
		a.fresh.stale = nil
		err := read(c, args)
		if words := a.fresh.words(); err == nil && words != "" {
			a.Note("%s", words)
		}
		return err
	}
	return cmd
}

// words says how old a stale answer is, since when, and what works; "" if it is not stale.
func (f *freshness) words() string {
	if f.stale == nil {
		return ""
	}
	since := ""
	if f.stale.Known {
		since = ", since " + time.Now().Add(-f.stale.Age).Format("15:04:05")
	}
	return fmt.Sprintf("stale: %s%s; %s", node.StaleWords(f.stale.Age, f.stale.Known), since, node.StaleMeans)
}

// apply has a client ask for answers as fresh as the flag says.
func (f *freshness) apply(c *client.Client) (*client.Client, error) {
	most := time.Duration(-1)
	if f.most != "" {
		var err error
		if most, err = jobspec.ParseDuration(f.most); err != nil || most < 0 {
			return nil, Usage("--max-staleness %q: must be a duration of 0 or more, e.g. 5s", f.most)
		}
	}
	return c.Fresh(most, func(s client.Staleness) { f.stale = &s }), nil
}
