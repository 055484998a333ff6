package jobcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/fetch"
)

// bringing is what run brings back into the working directory.
type bringing struct {
	globs []string // none = nothing
	force bool
}

// bringingOf reads the flags, and refuses files whose names are taken here, before anything runs.
func bringingOf(cmd *cobra.Command, force bool) (bringing, error) {
	b := bringing{force: force}
	for _, name := range []string{flagOutput, flagOptional} {
		globs, err := textsOf(cmd.Flags(), name)
		if err != nil {
			return b, err
		}
		b.globs = append(b.globs, globs...)
	}
	if force {
		return b, nil
	}
	sources, err := sourcesOf(cmd)
	if err != nil {
		return b, err
	}
	var own []string // an input that is an output, too, may come back as it was
	for _, src := range sources {
		if filepath.Clean(src.Local) == src.Path {
			own = append(own, src.Path)
		}
	}
	return b, b.checkFree(own)
}

// checkFree refuses globs that name something in the working directory.
func (b *bringing) checkFree(own []string) error {
	for _, glob := range b.globs {
		if glob == "./" {
			continue // all that there is: of that only the end tells
		}
		names, err := filepath.Glob(strings.TrimSuffix(glob, "/"))
		if err != nil {
			continue // the broker says what is wrong with it
		}
		for _, name := range names {
			if !slices.Contains(own, name) && !isEmptyDir(name) {
				return cli.Usage("%s is here already, and --output %s may bring another: move it away, or give --force", name, glob)
			}
		}
	}
	return nil
}

func isEmptyDir(name string) bool {
	entries, err := os.ReadDir(name)
	return err == nil && len(entries) == 0
}

// bring fetches what the job's task has left, once it has ended.
func (b *bringing) bring(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	if len(b.globs) == 0 {
		return nil
	}
	var away []wire.Task
	if job, err := c.Job(ctx, id); err == nil {
		away = awaitFailed(ctx, c, &job, nil)
	}
	list, outcome, err := fetchTo(ctx, a, c, fetch.Plan{Job: id, Dir: ".", Force: b.force}, nil)
	if err != nil {
		return fmt.Errorf("%w; job %s has its files still: cloudshare fetch %s -o FOLDER", err, id, id)
	}
	if len(list) > 0 {
		a.Note("%s", fetched(outcome))
	}
	tellAway(a, id, away)
	tellBehind(ctx, a, c, id, nil)
	return nil
}
