package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// event is what the figures need of one.
type event struct{ Job, Outcome string }

// follow reads a site's events that the query selects until take has enough, ctx ends
// or the site breaks off. ready is called once, when the stream stands or never will.
func follow(ctx context.Context, transport http.RoundTripper, s *testbed.Site, query string, ready func(),
	take func(event) (more bool),
) error {
	isReady := sync.OnceFunc(ready)
	defer isReady()
	u := s.URL.JoinPath("/v1/events")
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	s.Authorize(req.Header)
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /v1/events: %s", res.Status)
	}
	in := bufio.NewScanner(res.Body)
	for more := true; more && in.Scan(); {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		isReady() // the first one is the hello
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if e.Job != "" {
			more = take(e)
		}
	}
	return in.Err()
}

// errBrokenOff: the site ended a stream by itself.
var errBrokenOff = errors.New("the stream of events broke off")

// untilEnded submits jobs and returns when the site has told that all of them have
// succeeded, as a user's program would hear it: nothing is asked meanwhile.
func untilEnded(ctx context.Context, s *testbed.Site, submit func() (ids []string, err error)) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stands, ends := make(chan struct{}), make(chan event, shortTasks)
	transport := &http.Transport{DisableCompression: true, DialContext: s.Dial}
	defer transport.CloseIdleConnections()
	go func() {
		err := follow(ctx, transport, s, "kind=job.ended", func() { close(stands) }, func(e event) bool {
			ends <- e
			return ctx.Err() == nil
		})
		leave(errors.Join(errBrokenOff, err))
	}()
	<-stands
	ids, err := submit()
	if err != nil {
		return err
	}
	open := make(map[string]bool, len(ids))
	for _, id := range ids {
		open[id] = true
	}
	for len(open) > 0 {
		select {
		case e := <-ends:
			if open[e.Job] && e.Outcome != "succeeded" {
				return fmt.Errorf("job %s: %s", e.Job, e.Outcome)
			}
			delete(open, e.Job)
		case <-ctx.Done():
			return fmt.Errorf("await the ends of %d jobs: %w", len(open), context.Cause(ctx))
		}
	}
	return nil
}
