package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// streams are the outputs of an attempt by number.
var streams = []string{"stdout", "stderr"}

// broughtHome opens what an attempt of this site's job has written at another one, if that is here.
func (rd *Reader) broughtHome(id executor.ID, stream string) (io.ReadCloser, error) {
	n := slices.Index(streams, stream)
	if rd.home == nil || n < 0 {
		return nil, executor.ErrUnknownAttempt
	}
	r, err := rd.home.Open(id, n)
	if err != nil {
		return nil, fmt.Errorf("output of %s that was brought home: %w", id, err)
	}
	return r, nil
}

// findHome is broughtHome of an attempt of which the site or the token is not known. REQUIRES: q.Task is a position.
func (rd *Reader) findHome(q node.LogQuery) (io.ReadCloser, error) {
	if rd.home == nil || q.Job.Site != rd.site {
		return nil, executor.ErrUnknownAttempt
	}
	id, err := rd.home.Find(q.Job.String(), q.Task, q.Attempt)
	if err != nil {
		return nil, fmt.Errorf("output that was brought home: %w", err)
	}
	return rd.broughtHome(id, q.Stream)
}

// newestHome returns the newest attempt of a task of which the output is here.
func (rd *Reader) newestHome(job command.JobID, position uint32) executor.Newest {
	if rd.home == nil || job.Site != rd.site {
		return executor.Newest{}
	}
	return rd.home.FindNewest(job.String(), position)
}

// GiveOutput opens what an attempt of a job of the site from has written here, for that site's broker, or says why not.
// Its streams end when the attempt has.
func (rd *Reader) GiveOutput(ctx context.Context, from string, r asklogs.Ref) (o asklogs.Output, why asklogs.Refusal) {
	q := node.LogQuery{
		Job: command.JobID{Site: from, Num: r.Num}, Task: r.Task, Attempt: r.Attempt, Follow: true, Here: true,
	}
	if from == rd.site {
		return o, asklogs.NotHere
	}
	if q.Attempt == 0 {
		for _, k := range rd.KeptOutputs(q.Job, []uint32{q.Task}) {
			if q.Attempt = k.Attempt; k.Attempt == 0 {
				return o, refusalOf(ctx, k.Err)
			}
		}
	}
	if q.Attempt == 0 {
		return o, asklogs.NotHere
	}
	id, err := rd.findHere(q)
	for n, name := range streams {
		if err == nil {
			q.Stream = name
			o.Streams[n], err = rd.logsOf(ctx, id, q)
		}
	}
	if err != nil {
		o.Close()
		return asklogs.Output{}, refusalOf(ctx, err)
	}
	o.Attempt, o.Token = id.Attempt, id.Token
	return o, asklogs.Granted
}

// refusalOf says to another broker why an output is not given.
func refusalOf(ctx context.Context, err error) asklogs.Refusal {
	switch {
	case ctx.Err() != nil:
		return asklogs.Running
	case errors.Is(err, node.ErrOutputDamaged):
		return asklogs.Damaged
	case errors.Is(err, node.ErrOutputGone):
		return asklogs.Removed
	case errors.Is(err, node.ErrNotFound):
		return asklogs.NotHere
	}
	return asklogs.Unreadable
}
