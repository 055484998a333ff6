package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// apply has the fake's replica take one entry of site-1.
func (f *fakeBroker) apply(t *testing.T, bodies ...command.Body) {
	t.Helper()
	b := command.Batch{Term: 1, Elapsed: int64(10 * f.replica.Index())}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, body := range bodies {
		id := command.ID{Site: f.site}
		switch body.(type) {
		case *command.Genesis, *command.Register:
		default:
			f.seq++
			id.Incarnation, id.Seq = 1, f.seq
		}
		b.Commands = append(b.Commands, command.Command{ID: id, Ack: max(id.Seq, 1) - 1, Body: body})
	}
	results, err := f.replica.Apply(b.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Code != command.OK {
			t.Fatalf("%+v", r)
		}
	}
	f.index = f.replica.Index()
}

// found brings the fake's replica to entry 2: site-1 has registered.
func (f *fakeBroker) found(t *testing.T) {
	t.Helper()
	f.apply(t, &command.Genesis{Federation: [16]byte{1}, Params: command.DefaultParams()})
	f.apply(t, &command.Register{Node: [16]byte{1}, Boot: [16]byte{1}, HTTP: "127.0.0.1:1", Peer: "127.0.0.1:2", MaxVersion: fsm.Version})
}

// submitted is a command that publishes a job of one task.
func submitted(num uint64) *command.Submit {
	return &command.Submit{Jobs: []command.JobSpec{{
		Num: num, Count: 1, Need: command.Resources{MilliCPU: 1000},
		MaxAttempts: 1, Payload: []byte("{}"),
	}}}
}

// awaitWaiters returns once so many streams and blocking reads are held.
func awaitWaiters(t *testing.T, s *Server, n int64) {
	t.Helper()
	ctx := limit(t)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for s.waiters.Taken() != n {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("%d streams and blocking reads are held, want %d", s.waiters.Taken(), n)
		}
	}
}

// listener reads server-sent events.
type listener struct {
	t   *testing.T
	in  *bufio.Reader
	res *http.Response
}

func listen(t *testing.T, ctx context.Context, s *Server, query string, headers ...string) *listener {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != wire.TypeEvents {
		t.Fatalf("%s %s", res.Status, res.Header)
	}
	return &listener{t, bufio.NewReader(res.Body), res}
}

// next returns an event's id, name and data; "" at the end.
func (l *listener) next() (id, name, data string) {
	l.t.Helper()
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			return "", "", ""
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if name != "" {
				return id, name, data
			}
		}
	}
}

// want reads so many events and compares "id name".
func (l *listener) want(lines ...string) {
	l.t.Helper()
	for _, want := range lines {
		id, name, data := l.next()
		if got := id + " " + name; got != want {
			l.t.Fatalf("got %q, want %q: %s", got, want, data)
		}
		if !json.Valid([]byte(data)) {
			l.t.Fatalf("%s: %q", want, data)
		}
	}
}

// TestEventsStreamAndResume: what happens comes as it happens, and a client goes
// on after the last id that it has.
func TestEventsStreamAndResume(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	f.found(t)
	live := listen(t, limit(t), s, "")
	live.want(" hello")
	f.apply(t, submitted(1), submitted(2))
	f.apply(t, &command.Cancel{Job: command.JobID{Site: "site-1", Num: 1}, Task: -1})
	later := []string{"3.2 job.submitted", "4.1 job.cancelling", "4.2 task.ended", "4.3 job.ended"}
	live.want(append([]string{"3.1 job.submitted"}, later...)...)
	for query, want := range map[string][]string{
		"?from=3.1":                           later,
		"?from=3":                             later[1:],
		"?from=0&kind=site":                   {"2.1 site.registered"},
		"?from=0&kind=job.ended&kind=task":    {"4.2 task.ended", "4.3 job.ended"},
		"?from=0&job=site-1.2":                {"3.2 job.submitted"},
		"?from=0&site=site-2":                 nil,
		"?from=0&label=a%3Db":                 nil,
		"?from=4.3":                           nil,
		"?from=99":                            {"4.3 reset"}, // of another federation, or a past state
		"?from=99.9.9":                        {"4.3 reset"},
		"?from=18446744073709551615.0.0":      {"4.3 reset"},
		"?from=3.1&site=site-1&job=site-1.99": nil,
	} {
		l := listen(t, limit(t), s, query+"&follow=false")
		l.want(" hello")
		l.want(want...)
		if id, name, _ := l.next(); name != "" {
			t.Errorf("%s: also %s %s", query, id, name)
		}
	}
	again := listen(t, limit(t), s, "?from=0", "Last-Event-ID", "4.2")
	again.want(" hello", "4.3 job.ended")
}

// TestEventsForm: the fields of each kind that matters, as clients see them.
func TestEventsForm(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	f.found(t)
	f.apply(t, &command.Offer{Version: 1, Machines: []command.Machine{{
		Name:      "m",
		Resources: command.Resources{MilliCPU: 1000},
	}}}, submitted(1))
	ref := command.AttemptRef{Job: command.JobID{Site: "site-1", Num: 1}, Attempt: 1, Token: 3}
	f.apply(t, &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: ref}}})
	f.apply(t, &command.Complete{Attempts: []command.Ended{{
		AttemptRef: ref, Outcome: command.Failed, ExitCode: 3,
		Detail: "no such file",
	}}})
	f.apply(t, &command.Usage{Batch: 1, Rows: []command.UsageRow{{
		Job: 2, Need: command.Resources{MilliCPU: 2000},
		RunMs: 5,
	}}})
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/events?from=0&follow=false", "", nil)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(body)) { // dates are those of this run
		if before, rest, ok := strings.Cut(line, `"time":"`); ok {
			_, after, _ := strings.Cut(rest, `"`)
			line = before + `"time":"…"` + after
		}
		out.WriteString(line)
	}
	golden(t, "events.txt", out.String())
}

// TestEventsAreBounded: streams beyond the bound are refused with a hint, a
// filter that makes no sense is told, and a stream that ends makes room.
func TestEventsAreBounded(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{MaxWaiters: 2})
	f.found(t)
	ctx, leave := context.WithCancel(limit(t))
	for range 2 {
		listen(t, ctx, s, "").want(" hello")
	}
	for _, path := range []string{"/v1/events", "/v1/sites?index=2"} {
		if w := ask(s, "GET", path, "", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" ||
			!strings.HasSuffix(typeOf(t, w.Body.Bytes()), "too-many-waiters") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, query := range []string{
		"from=x", "from=1.2.3.4", "kind=task.exploded", "kind=", "job=7", "site=Bad+Site", "label=novalue", "follow=maybe", "colour=red",
		"job=site-1.1&job=site-1.2", "from=0&from=1",
	} {
		if w := ask(s, "GET", "/v1/events?"+query, "", ""); w.Code != 400 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	leave()
	awaitWaiters(t, s, 0)
}

// TestSlowListenerIsCut: a client that takes nothing does not hold a stream, and
// finds the place at which to go on in what it got.
func TestSlowListenerIsCut(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{BodyTimeout: 50 * time.Millisecond})
	f.found(t)
	conn := dial(t, s)
	send1(t, conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	awaitWaiters(t, s, 1)
	num := uint64(1)
	ctx := limit(t)
	// Not as fast as can be: a stream that is lapped has only resets to tell.
	next := time.NewTicker(time.Millisecond)
	defer next.Stop()
	for s.waiters.Taken() > 0 {
		select {
		case <-next.C:
		case <-ctx.Done():
			t.Fatalf("a client that takes nothing was not cut after %d jobs", num)
		}
		var all []command.Body
		for range 100 {
			all = append(all, submitted(num))
			num++
		}
		f.apply(t, all...)
	}
	text, _ := io.ReadAll(conn) // it ends
	last := ""
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(line, "id: "); ok && strings.HasSuffix(id, "\n") {
			last = strings.TrimSpace(id)
		}
	}
	l := listen(t, limit(t), s, "?from="+last)
	l.want(" hello")
	if id, name, _ := l.next(); id == "" || name != "job.submitted" && name != "reset" {
		t.Errorf("after %q comes %q %q", last, id, name)
	}
}

// TestShutdownEndsStreams, and blocking reads are answered.
func TestShutdownEndsStreams(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	f.found(t)
	l := listen(t, limit(t), s, "")
	l.want(" hello")
	read := make(chan int)
	go func() {
		res, err := http.Get("http://" + s.Addr() + "/v1/queue?index=2")
		if err != nil {
			t.Error(err)
			close(read)
			return
		}
		_ = res.Body.Close()
		read <- res.StatusCode
	}()
	awaitWaiters(t, s, 2)
	if err := s.Shutdown(limit(t)); err != nil {
		t.Fatal(err)
	}
	if _, name, _ := l.next(); name != "" {
		t.Errorf("%s after the shutdown", name)
	}
	if code := <-read; code != 200 {
		t.Errorf("blocking read: %d", code)
	}
}

// TestThousandListeners: each of many streams gets each event.
func TestThousandListeners(t *testing.T) {
	const clients = 1000
	f := newFake("site-1")
	s := serve(t, f, Config{})
	f.found(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []*listener
	for range clients {
		l := listen(t, ctx, s, "")
		l.want(" hello")
		all = append(all, l)
	}
	for num := uint64(1); num <= 3; num++ {
		f.apply(t, submitted(num))
	}
	for _, l := range all {
		for i := range 3 {
			l.want(fmt.Sprintf("%d.1 job.submitted", 3+i))
		}
	}
}
