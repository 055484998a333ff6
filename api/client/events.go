package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// ErrEventsMissed says that events were missed: the broker does not hold them
// any more, or a snapshot replaced its state. Read again what you keep; the
// events go on.
var ErrEventsMissed = errors.New("events missed")

const (
	// maxFrame bounds one event, in bytes.
	maxFrame = 1 << 20
	// silence is how long a broker may say nothing: it beats every 15 s.
	silence = 45 * time.Second
	// again is the pause before a connection is made again.
	again = 500 * time.Millisecond
)

// EventQuery selects events; zero fields select all.
type EventQuery struct {
	From   string   // an event's ID, or an entry's number: begin after it; "" = now
	Kinds  []string // kinds (task.ended) and groups of them (task)
	Job    string
	Site   string   // its own events and those of its jobs
	Labels []string // KEY=VALUE of the job
	// Once ends after the events that the broker holds, instead of waiting.
	Once bool
	// Patience is how long a broker may be away: within it a broken connection
	// is made again and goes on after the last event. 0 = any break is an error.
	Patience time.Duration
}

func (q *EventQuery) values(from string) url.Values {
	v := values("from", from, "job", q.Job, "site", q.Site)
	v["kind"], v["label"] = q.Kinds, q.Labels
	if q.Once {
		v.Set("follow", "false")
	}
	return v
}

// Events yields what happens, in order. ErrEventsMissed comes with an event
// that has only an ID and an Index, and does not end the events; every other
// error does. They end without one when the loop breaks, or after Once.
func (c *Client) Events(ctx context.Context, q EventQuery) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		s := eventStream{client: c, query: q, from: q.From, yield: yield}
		var away time.Time
		for {
			err := s.connect(ctx)
			if err == nil || s.stopped {
				return
			}
			if s.heard {
				away, s.heard = time.Time{}, false
			}
			if away.IsZero() {
				away = time.Now()
			}
			if ctx.Err() != nil || !passing(err) || time.Since(away) >= q.Patience {
				yield(wire.Event{}, errors.Join(ctx.Err(), err))
				return
			}
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
	}
}

// passing reports an error that a restart of the broker ends.
func passing(err error) bool {
	var p *Problem
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTokenAway) ||
		errors.As(err, &p) && p.Status == http.StatusServiceUnavailable
}

// eventStream is one call of Events, over all its connections.
type eventStream struct {
	client  *Client
	query   EventQuery
	from    string // id of the last event
	yield   func(wire.Event, error) bool
	heard   bool // the connection began well
	stopped bool // the loop broke
}

// connect reads one connection; nil at a regular end.
func (s *eventStream) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := s.client.do(ctx, http.MethodGet, "/v1/events", s.query.values(s.from), nil, http.Header{"Accept": {wire.TypeEvents}})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	in := bufio.NewReaderSize(res.Body, 64<<10)
	for !s.stopped {
		name, data, err := readFrame(in, func() { quiet.Reset(silence) })
		switch {
		case errors.Is(err, io.EOF) && s.query.Once:
			return nil
		case errors.Is(err, ErrBadAnswer):
			return err
		case err != nil:
			return fmt.Errorf("%w: the stream of events broke off: %w", ErrUnreachable, err)
		}
		s.heard = true
		if err := s.dispatch(name, data); err != nil {
			return err
		}
	}
	return nil
}

// dispatch yields one event.
func (s *eventStream) dispatch(name string, data []byte) error {
	switch name {
	case wire.EventHello:
		var h wire.Hello
		if err := json.Unmarshal(data, &h); err != nil {
			return fmt.Errorf("%w: hello: %w", ErrBadAnswer, err)
		}
		if s.from == "" {
			s.from = h.From
		}
	case wire.EventReset:
		var r wire.Reset
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%w: reset: %w", ErrBadAnswer, err)
		}
		s.from = r.ID
		s.stopped = !s.yield(wire.Event{ID: r.ID, Index: r.Index}, fmt.Errorf("%w: %s", ErrEventsMissed, r.Reason))
	default:
		var e wire.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: event: %w", ErrBadAnswer, err)
		}
		s.from = e.ID
		s.stopped = !s.yield(e, nil)
	}
	return nil
}

// readFrame reads one server-sent event; each line is a sign of life.
func readFrame(in *bufio.Reader, alive func()) (name string, data []byte, err error) {
	size := 0
	for {
		line, err := readLine(in, maxFrame-size)
		if err != nil {
			return "", nil, err
		}
		alive()
		size += len(line)
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && name != "":
			return name, data, nil
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			data = append(data, value...)
		case len(field) == 0: // a beat
			size = 0
		}
	}
}

// readLine reads a line of at most so many bytes, without its end.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, fmt.Errorf("%w: an event of more than %d bytes", ErrBadAnswer, maxFrame)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}
