package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

const (
	// watchWait is how long a read waits for something to happen: standings move
	// with time, too.
	watchWait = 5 * time.Second
	// watchPace is the least time between two looks.
	watchPace = 200 * time.Millisecond
	// clearScreen moves a terminal's cursor home and clears what is below.
	clearScreen = "\x1b[H\x1b[J"
)

// Watchable gives a command that shows something the flag --watch: it shows it
// again whenever it has changed.
func (a *App) Watchable(cmd *cobra.Command) *cobra.Command {
	watch := cmd.Flags().BoolP("watch", "w", false, "show it again whenever it changes, until interrupted")
	once := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if !*watch {
			return once(c, args)
		}
		return a.repeat(c.Context(), func() error { return once(c, args) })
	}
	return cmd
}

// repeat calls show, which asks and prints once, again and again.
func (a *App) repeat(ctx context.Context, show func() error) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	own := a.Streams
	s := screen{out: own.Out, terminal: IsTerminal(own.Out)}
	a.watcher = c.Watching(watchWait)
	away, told := time.Time{}, false
	for {
		var frame bytes.Buffer
		a.Streams = Streams{In: own.In, Out: &frame, Err: io.Discard}
		err = show()
		a.Streams = own
		switch {
		case ctx.Err() != nil:
			return nil // told to stop, as watching ends
		case err == nil:
			away = time.Time{}
			told = a.noteStale(&frame, told)
			if err = s.draw(frame.Bytes()); err != nil {
				return err
			}
			if a.Over {
				return a.Outcome
			}
		case !IsPassing(err) || !away.IsZero() && time.Since(away) > Patience:
			return err
		case away.IsZero():
			away = time.Now()
			a.Note("%s; trying again", Explain(err))
		}
		select {
		case <-time.After(watchPace):
		case <-ctx.Done():
			return nil
		}
	}
}

// noteStale says below a table that it is stale. Other forms are for programs: there
// a note says so once, until it is over; told: it has.
func (a *App) noteStale(frame io.Writer, told bool) bool {
	words := a.fresh.words()
	switch {
	case words == "":
	case a.Format == "table":
		fmt.Fprintln(frame, words)
	case !told:
		a.Note("%s", words)
	}
	return words != ""
}

// screen shows what has changed.
type screen struct {
	out      io.Writer
	terminal bool
	last     []byte
}

// draw shows a frame in place of the last one; where nothing can be replaced,
// after it, with an empty line between.
func (s *screen) draw(frame []byte) error {
	if bytes.Equal(frame, s.last) {
		return nil
	}
	between := ""
	switch {
	case s.terminal:
		between = clearScreen
	case s.last != nil:
		between = "\n"
	}
	s.last = frame
	if _, err := fmt.Fprintf(s.out, "%s%s", between, frame); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
