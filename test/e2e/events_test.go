package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// follower reads a broker's events as a browser does.
type follower struct {
	site  *testbed.Site
	query string
	last  string // id of the last event
	index uint64 // of its entry
}

// until reads until a job has ended. A connection that breaks, or is refused
// because the broker is not ready, is made again and goes on after the last event.
func (f *follower) until(t *testing.T, job string) {
	t.Helper()
	await(t, "the end of "+job, func() error {
		r, err := http.NewRequestWithContext(within(t), http.MethodGet, f.site.URL.String()+"/v1/events?"+f.query, nil)
		must(t, err)
		r.Header.Set("Last-Event-ID", f.last)
		f.site.Authorize(r.Header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return &testbed.HTTPError{Status: answer.StatusCode}
		}
		return f.read(t, bufio.NewScanner(answer.Body), job)
	})
}

func (f *follower) read(t *testing.T, in *bufio.Scanner, job string) error {
	t.Helper()
	id, kind := "", ""
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			var e struct {
				Index uint64
				Job   string
			}
			must(t, json.Unmarshal([]byte(value), &e))
			if kind == "hello" {
				continue
			}
			if kind == "reset" || e.Index < f.index {
				t.Errorf("%s after %s: %s", kind, f.last, value)
			}
			f.last, f.index = id, e.Index
			if kind == "job.ended" && e.Job == job {
				return nil
			}
		}
	}
	return cmp.Or(in.Err(), io.ErrUnexpectedEOF)
}

// TestEventsGoOnOverARestart: who follows the events of a broker that is killed
// and comes back is told each in order, and nothing of before again.
func TestEventsGoOnOverARestart(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 1)
	first, second := fed.Sites[0], fed.Sites[1]
	bag := testbed.Spec{Command: []string{"/bin/true"}, Count: 4} // more than there is room at home
	f := follower{site: first, query: "kind=job&site=" + second.Name, last: "0"}
	f.until(t, submit(t, second, bag).ID)
	f.until(t, submit(t, second, bag).ID)
	must(t, first.Kill())
	f.index++ // so that the last event told again is found, too
	must(t, fed.Restart(within(t), first))
	f.until(t, submit(t, second, bag).ID)
}
