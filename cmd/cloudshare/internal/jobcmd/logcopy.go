package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// How often broken output is asked for again without anything new of it, when
// nothing more is written to it. As long as its attempt runs there is no bound.
const (
	// triesOver: the attempt has ended, or nobody knows. With growing pauses
	// this takes some 30 s, as long as a broker is waited for elsewhere.
	triesOver = 30
	// triesFormer: the task runs again elsewhere, likely because this site was
	// lost, and that output waits behind this one.
	triesFormer = 3
)

// errBroken: a connection ended before the output did.
var errBroken = errors.New("the connection broke off")

// logCopy prints one stream of an attempt, over as many connections as it takes.
type logCopy struct {
	client *client.Client
	id     string
	query  client.LogQuery
	to     counter
	pause  time.Duration // before the next try, growing up to pollMost
	// begun: output is known to be there, so that a broker that is away at first
	// is waited for too.
	begun bool
}

// counter counts what is printed. Output only grows, and what a reader has seen
// of it stays, so the count says where to go on.
type counter struct {
	io.Writer
	n   int64
	err error // of the writer
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}

// copyLogs writes one stream, and returns how many bytes. An error means that what was
// printed is not all.
func copyLogs(ctx context.Context, c *client.Client, id string, q client.LogQuery, to io.Writer) (int64, error) {
	l := &logCopy{client: c, id: id, query: q, to: counter{Writer: to}, pause: pollFirst}
	err := l.run(ctx)
	return l.to.n, err
}

// run returns nil once all is printed.
func (l *logCopy) run(ctx context.Context) error {
	l.nameAttempt(ctx)
	for tries := 0; ; tries++ {
		before := l.to.n
		err := l.once(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case l.to.err != nil || !errors.Is(err, errBroken) && !(l.begun && cli.IsPassing(err)):
			return err
		case l.query.Attempt == 0 && l.to.n > 0:
			return err // the latest attempt may be another one by now
		case l.query.Tail > 0 && l.to.n > 0:
			return err // its last lines may be others by now
		}
		l.begun = true
		if l.to.n > before {
			tries = 0
		}
		if most, live := l.most(ctx); live {
			tries = 0
		} else if tries >= most {
			return err
		}
		if err := l.pauseBetween(ctx); err != nil {
			return err
		}
	}
}

// nameAttempt finds out which attempt is the latest, for later connections to
// ask for the same one. Where that fails, Logs says why.
func (l *logCopy) nameAttempt(ctx context.Context) {
	if l.query.Attempt > 0 {
		return
	}
	if list, err := l.client.Tasks(ctx, l.id, 1, strconv.FormatUint(uint64(l.query.Task), 10)); err == nil &&
		len(list.Items) == 1 {
		l.query.Attempt = list.Items[0].Attempt
	}
}

// once prints what one connection brings, from where the last one ended.
func (l *logCopy) once(ctx context.Context) error {
	body, err := l.client.Logs(ctx, l.id, l.query)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err = io.CopyN(io.Discard, body, l.to.n); err == nil {
		_, err = io.Copy(&l.to, body)
	}
	switch {
	case err == nil:
		return nil
	case l.to.err != nil:
		return fmt.Errorf("print output of %s: %w", l.id, err)
	}
	return fmt.Errorf("read output of %s: %w after %d bytes: %w", l.id, errBroken, l.to.n, err)
}

// most returns how many tries in vain are enough; live: none, for the attempt runs.
func (l *logCopy) most(ctx context.Context) (tries int, live bool) {
	list, err := l.client.Tasks(ctx, l.id, 1, strconv.FormatUint(uint64(l.query.Task), 10))
	if err != nil || len(list.Items) != 1 {
		return triesOver, false
	}
	task := list.Items[0]
	if _, over := cli.EndCodes[task.State]; over {
		return triesOver, false
	}
	if l.query.Attempt > 0 && task.Attempt > l.query.Attempt {
		return triesFormer, false
	}
	return 0, true
}

// pauseBetween waits between two connections.
func (l *logCopy) pauseBetween(ctx context.Context) error {
	was := l.pause
	l.pause = min(l.pause*3/2, pollMost)
	return cli.Sleep(ctx, was)
}
