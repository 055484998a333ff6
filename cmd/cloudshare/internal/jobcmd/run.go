package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

const (
	// cancelWait is how long an interrupted run waits for its task to end.
	cancelWait = 30 * time.Second
	// signalled is what a shell adds to the number of the signal that ended a
	// program.
	signalled = 128
)

func runCommand(a *cli.App) *cobra.Command {
	var o client.SubmitOptions
	var force bool
	cmd := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG…]", Short: "Run a command somewhere in the federation, as if it ran here",
		Long: `Submit a job of one task, print its output as it comes, and exit with the
task's own exit code; with 128+N if signal N ended it, 10 if it failed without
one, 11 if it was cancelled, 12 if it was lost. Output that breaks off, as when a
broker restarts, is gone on with; if that fails, the exit code is not 0.

Files go with it, and come back: --input sends them into the task's work folder, and
what --output names is in the working directory after the end, under the same names.
What is there already is refused at once, or overwritten with --force.

The command's standard input is empty: this program's is not passed on.

Interrupting it (Ctrl-C) cancels the job and waits for its end; doing so twice
leaves at once. A reader of its output that goes away, as head does, ends the job
alike.`,
		Example: `  cloudshare run -- make -C /srv/render
  cloudshare run --cpu 4 --timeout 10m -- sh -c 'exit 7'; echo $?
  cloudshare run --input sim.py --output result.csv -- python3 sim.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkKey(cmd.Flags(), o.Key); err != nil {
				return err
			}
			if len(args) == 0 && !cmd.Flags().Changed("image") {
				return cli.Usage("no command: cloudshare run [flags] -- COMMAND")
			}
			back, err := bringingOf(cmd, force)
			if err != nil {
				return err
			}
			files := &sending{app: a}
			spec, err := specGiven(cmd, args, files)
			if err != nil {
				return err
			}
			if taskCount(spec) > 1 {
				return cli.Usage("run is for one task: submit --count %d --wait runs many", taskCount(spec))
			}
			if err := files.send(cmd.Context()); err != nil {
				return err
			}
			signal.Ignore(syscall.SIGPIPE) // or it ends this program, not the job
			return runJob(cmd.Context(), a, spec, o, back)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are the command's
	f.StringVar(&o.Key, "key", "", "idempotency key: the same key and job again is one job")
	f.BoolVar(&o.Strict, "strict", false, "refuse a job that no present site could run")
	f.BoolVar(&force, "force", false, "overwrite files here with those that come back")
	specFlags(f)
	fileFlags(a, cmd)
	_ = f.MarkHidden("count") // it is there
	return cmd
}

// runJob submits, follows, brings files back, and ends as the task did.
func runJob(ctx context.Context, a *cli.App, spec []byte, o client.SubmitOptions, back bringing) error {
	ctx, unread := context.WithCancel(ctx)
	defer unread()
	a.Out, a.Err = &reader{a.Out, unread}, &reader{a.Err, unread}
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	accepted, err := c.Submit(ctx, spec, o)
	if err != nil {
		return err
	}
	a.Note("job %s", accepted.ID)
	if accepted.Reason != "" {
		a.Note("%s: %s", accepted.State, accepted.Reason)
	}
	on, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan struct{})
	unheard := context.AfterFunc(ctx, func() {
		defer close(over)
		abandonJob(on, a, stop, c, accepted.ID)
	})
	defer func() {
		if !unheard() {
			<-over // it may not have been told yet that the job is cancelled
		}
	}()
	task, missing, err := followTask(on, a, c, accepted.ID)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; job %s may still run: %w", accepted.ID, err)
		}
		return err
	}
	var brought error
	if ctx.Err() == nil { // who interrupts waits for no files
		brought = back.bring(ctx, a, c, accepted.ID)
	}
	if err := taskExit(accepted.ID, task); err != nil {
		if brought != nil {
			a.Note("%s", cli.Explain(brought))
		}
		return err
	}
	if brought == nil && missing {
		return incomplete(accepted.ID)
	}
	return brought
}

// reader is where output goes as long as somebody reads it.
type reader struct {
	io.Writer
	gone func() // is called when nobody does any more
}

// Write implements io.Writer.
func (r *reader) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		r.gone()
	}
	return n, err
}

// incomplete returns the end of a job that succeeded, while its output did not come
// through.
func incomplete(id string) error {
	return cli.WithExit(cli.ExitError, fmt.Errorf("job %s succeeded, but its output is not complete: try cloudshare logs %s", id, id))
}

// abandonJob cancels the job of a run that was interrupted, and gives its task time
// to end.
func abandonJob(ctx context.Context, a *cli.App, stop func(), c *client.Client, id string) {
	signal.Reset(os.Interrupt, syscall.SIGTERM) // the next one ends this program
	time.AfterFunc(cancelWait, stop)
	a.Note("cancelling job %s", id)
	var p *client.Problem
	if _, err := c.Cancel(ctx, id); err != nil && !(errors.As(err, &p) && p.Status == 409) {
		a.Note("job %s is not cancelled: %s", id, cli.Explain(err))
		stop()
	}
}

// followTask prints the output of every attempt of a job's one task, and
// returns the task as it ended. Of the last attempt's output some may be missing.
func followTask(
	ctx context.Context, a *cli.App, c *client.Client, id string,
) (task wire.Task, missing bool, err error) {
	w := c.Watching(time.Minute)
	for printed := uint32(0); ; {
		task, err = awaitTask(ctx, w, id, printed)
		if err != nil || !hasOutput(task, printed) {
			return task, missing, err
		}
		for printed < task.Attempt {
			printed++
			mayHaveNone := printed < task.Attempt || task.State == "failed" && task.StartedAt == nil
			missing = !copyBoth(ctx, a, c, id, printed, mayHaveNone)
		}
		if _, over := cli.EndCodes[task.State]; over {
			return task, missing, nil // to ask again would wait for what never comes
		}
	}
}

// hasOutput reports whether the task's attempt began and was not printed. One
// that ended at once may not have been seen to start.
func hasOutput(t wire.Task, printed uint32) bool {
	return t.Attempt > printed && (t.StartedAt != nil || t.State == "succeeded" || t.State == "failed")
}

// awaitTask returns the task once it has output that was not printed, or has
// ended.
func awaitTask(ctx context.Context, w *client.Client, id string, printed uint32) (wire.Task, error) {
	ask := func() (wire.Task, error) {
		list, err := w.Tasks(ctx, id, 1, "")
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("%w: job %s has %d tasks", client.ErrBadAnswer, id, len(list.Items))
		}
		if err != nil {
			return wire.Task{}, err
		}
		return list.Items[0], nil
	}
	return waitFor(ctx, 0, ask, func(t wire.Task) bool {
		_, over := cli.EndCodes[t.State]
		return over || hasOutput(t, printed)
	})
}

// copyBoth prints both streams of an attempt until it ends, and reports whether
// that is all. One that may never have begun (its site declined it, or its image
// cannot run) need have none: then nobody has output of it.
func copyBoth(ctx context.Context, a *cli.App, c *client.Client, id string, attempt uint32,
	mayHaveNone bool,
) (whole bool) {
	var streams sync.WaitGroup
	var missing atomic.Bool
	for stream, to := range map[string]io.Writer{"stdout": a.Out, "stderr": a.Err} {
		l := &logCopy{
			client: c, id: id, query: client.LogQuery{Stream: stream, Attempt: attempt, Follow: true},
			to: counter{Writer: to}, pause: pollFirst, begun: true,
		}
		streams.Go(func() {
			err := l.run(ctx)
			if errors.Is(err, syscall.EPIPE) {
				return // nobody wants more
			}
			if err != nil && ctx.Err() == nil && !(mayHaveNone && cli.CodeOf(err) == cli.ExitNotFound) {
				a.Note("%s is not complete: %s", stream, cli.Explain(err))
				missing.Store(true)
			}
		})
	}
	streams.Wait()
	return !missing.Load()
}

// taskExit turns a task's end into the exit of this program.
func taskExit(id string, t wire.Task) error {
	why := ""
	if t.Reason != "" {
		why = ": " + t.Reason
	}
	switch {
	case t.State == "succeeded":
		return nil
	case t.State == "failed" && t.Signal != nil:
		return cli.WithExit(signalled+*t.Signal, fmt.Errorf("job %s was ended by signal %d%s", id, *t.Signal, why))
	case t.State == "failed" && t.ExitCode != nil && *t.ExitCode != 0:
		if t.StartedAt == nil { // no program of the user's has said why
			return cli.WithExit(*t.ExitCode, fmt.Errorf("job %s could not be started%s", id, why))
		}
		return cli.WithExit(*t.ExitCode, nil)
	}
	return cli.WithExit(cli.EndCodes[t.State], fmt.Errorf("job %s %s%s", id, t.State, why))
}
