package guard

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// fetch brings the files of a pod's task into its folder, if its orders name some. It is ended by TERM, as the first
// process of a container that is not the task's.
func fetch(environ []string, dir string) error {
	text, _ := split(environ)
	if text == "" {
		return nil
	}
	o, err := DecodeOrders(text)
	if err != nil || o.Files == nil || !o.Files.Fetch {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Files.Fetching, errLate(o.Files.Fetching))
	defer cancel()
	return o.client().Fetch(ctx, dir)
}

func errLate(most time.Duration) error { return fmt.Errorf("not within %s", most) }

// sendFiles sends what a task has left, if its end is one after which that is wanted. What could not be sent is told:
// the handler takes the attempt for lost. REQUIRES: no process of the task is left.
func (g *guard) sendFiles(t Told, r executor.Result) Told {
	f := g.orders.Files
	if f == nil || !f.Outputs.Kept(r) {
		return t
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), f.Sending, errLate(f.Sending))
	defer cancel()
	if err := g.orders.client().Send(ctx, g.asker.run, Work, f.Outputs); err != nil {
		t.Unsent = err.Error()
	}
	return t
}
