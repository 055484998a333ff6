package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Wait returns once all the jobs have ended, or after a time (at most 5 minutes):
// how far each one is, in order. At most 1000 jobs.
func (c *Client) Wait(ctx context.Context, ids []string, most time.Duration) (wire.Waited, error) {
	return plain[wire.Waited](ctx, c, "/v1/wait", url.Values{
		"job":  ids,
		"wait": {max(time.Millisecond, most.Round(time.Millisecond)).String()},
	})
}

// CancelMany cancels jobs, or tasks of them (SITE.NUMBER/3,17,40-60): one item per
// job, in order. At most 1000 jobs.
func (c *Client) CancelMany(ctx context.Context, jobs []string) (wire.Cancelled, error) {
	out, _, err := get[wire.Cancelled](ctx, c, http.MethodPost, "/v1/cancel", url.Values{"job": jobs}, nil, nil)
	return out, err
}

// CancelLabelled cancels the open jobs of the broker's site that have all the
// labels, each KEY=VALUE: up to 1000 of them, and More if there are others.
func (c *Client) CancelLabelled(ctx context.Context, labels []string) (wire.Cancelled, error) {
	return c.CancelSelected(ctx, "", labels)
}

// CancelSelected cancels the open jobs of the broker's site that are the user's, "" = whoever's, and have all the
// labels: up to 1000 of them, and More if there are others.
func (c *Client) CancelSelected(ctx context.Context, user string, labels []string) (wire.Cancelled, error) {
	out, _, err := get[wire.Cancelled](ctx, c, http.MethodPost, "/v1/cancel", selection(user, labels), nil, nil)
	return out, err
}

// selection names the open jobs of a user, "" = whoever's, that have all the labels.
func selection(user string, labels []string) url.Values {
	v := values("user", user)
	if len(labels) > 0 {
		v["label"] = labels
	}
	return v
}

// SetPriorities gives jobs another priority: one item per job, in order. At most 1000 jobs.
func (c *Client) SetPriorities(ctx context.Context, jobs []string, priority int32) (wire.Prioritized, error) {
	return c.prioritize(ctx, url.Values{"job": jobs}, priority)
}

// PrioritizeSelected gives the open jobs of the broker's site another priority that are the user's, "" = whoever's, and
// have all the labels: up to 1000 of them, and More if there are others.
func (c *Client) PrioritizeSelected(
	ctx context.Context, user string, labels []string, priority int32,
) (wire.Prioritized, error) {
	return c.prioritize(ctx, selection(user, labels), priority)
}

func (c *Client) prioritize(ctx context.Context, v url.Values, priority int32) (wire.Prioritized, error) {
	v.Set("priority", strconv.Itoa(int(priority)))
	out, _, err := get[wire.Prioritized](ctx, c, http.MethodPost, "/v1/priority", v, nil, nil)
	return out, err
}

// RerunQuery selects the tasks to run again; the zero value those that failed or
// were lost.
type RerunQuery struct {
	States []string
	Tasks  string // indices and ranges, such as "3,17,40-60"
	Key    string // idempotency key, "" for none
	// What each task has instead of what it had; nil and "" leave that.
	CPU, GPU *int64
	Memory   string // such as "8Gi"
	Timeout  string // such as "2h"
}

// Rerun submits a job that runs tasks of an earlier one again, with their indices.
func (c *Client) Rerun(ctx context.Context, id string, q RerunQuery) (Accepted, error) {
	v := values("tasks", q.Tasks, "memory", q.Memory, "timeout", q.Timeout)
	if len(q.States) > 0 {
		v["state"] = q.States
	}
	for name, n := range map[string]*int64{"cpu": q.CPU, "gpu": q.GPU} {
		if n != nil {
			v.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	a, res, err := get[wire.Accepted](ctx, c, http.MethodPost, jobPath(id)+"/rerun", v, nil,
		SubmitOptions{Key: q.Key}.header(wire.TypeJSON))
	if err != nil {
		return Accepted{}, err
	}
	return Accepted{a, res.Header.Get(wire.HeaderReplayed) == "true"}, nil
}

// OutputQuery selects the output of several tasks; without States and Tasks that
// of all which have begun.
type OutputQuery struct {
	States []string
	Tasks  string // indices and ranges, such as "3,17,40-60"
	Stream string // stdout (default) or stderr
	Tail   int    // only so many last lines of each; 0 = all
	Follow bool
	Cursor string
}

// Output reads the output of several tasks, calls each for every piece and every
// problem, and returns the cursor of the next tasks, "" when there are no more. It
// ends at each's first error.
func (c *Client) Output(
	ctx context.Context, id string, q OutputQuery, each func(wire.Output) error,
) (next string, err error) {
	v := values("tasks", q.Tasks, "stream", q.Stream, "cursor", q.Cursor)
	if len(q.States) > 0 {
		v["state"] = q.States
	}
	if q.Tasks == "" && len(q.States) == 0 {
		v.Set("all", "true")
	}
	if q.Tail > 0 {
		v.Set("tail", fmt.Sprint(q.Tail))
	}
	if q.Follow {
		v.Set("follow", "true")
	}
	res, err := c.do(ctx, http.MethodGet, jobPath(id)+"/logs", v, nil, nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	for dec := json.NewDecoder(res.Body); ; {
		var line wire.Output
		switch err := dec.Decode(&line); {
		case errors.Is(err, io.EOF):
			return next, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return "", brokeOff(id, err)
		}
		if next = line.Next; line.Task == nil {
			continue
		}
		if err := each(line); err != nil {
			return "", err
		}
	}
}

// brokeOff returns the error of an output that has not come to its end.
func brokeOff(id string, err error) error {
	kind := ErrUnreachable
	if errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) {
		kind = ErrBadAnswer
	}
	return fmt.Errorf("%w: the output of %s %w: %w", kind, id, ErrBrokeOff, err)
}
