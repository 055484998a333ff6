package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// broker answers as one would that runs a job of one task.
func broker() *httptest.Server {
	jobs := []string{"queued", "running", "succeeded"}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "POST /v1/jobs":
			if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-ndjson") {
				_, _ = io.WriteString(w, `{"id":"site-1.2","state":"queued","durability":"federation"}
{"type":"urn:cloudshare:problem:invalid-job","title":"The job is not valid","status":422,"detail":"count: must be at least 1","line":2}
`)
				return
			}
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"id":"site-1.1","state":"queued","durability":"federation","reason":"waiting for its turn and a free machine"}`)
		case "GET /v1/jobs/site-1.1":
			w.Header().Set("X-CloudShare-Index", fmt.Sprint(10+len(jobs)))
			fmt.Fprintf(w, `{"id":"site-1.1","site":"site-1","state":%q}`, jobs[0])
			jobs = jobs[min(1, len(jobs)-1):]
		case "GET /v1/jobs/site-1.1/logs":
			_, _ = io.WriteString(w, "hello\n")
		case "GET /v1/jobs/site-9.1":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-found","title":"Not found","status":404,"detail":"no site site-9"}`)
		case "GET /v1/events":
			_, _ = io.WriteString(w, `event: hello
data: {"site":"site-1","index":9,"from":"9"}

id: 10.1
event: job.submitted
data: {"id":"10.1","index":10,"kind":"job.submitted","job":"site-1.1","count":1}

: beat

id: 10.2
event: task.assigned
data: {"id":"10.2","index":10,"kind":"task.assigned","job":"site-1.1","task":0,"site":"site-2"}

id: 12
event: reset
data: {"id":"12","index":12,"reason":"a snapshot replaced the state"}

id: 13.1
event: job.ended
data: {"id":"13.1","index":13,"kind":"job.ended","job":"site-1.1","outcome":"succeeded"}

`)
		case "POST /v1/invitations":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token":"csi_…","addresses":["a.example.org:7701"],"site":"lab-2","motion":7,"waiting":["lab-1"]}`)
		case "PUT /v1/motions/lab-2/vote":
			_, _ = io.WriteString(w, `{"number":7,"what":"admit","site":"lab-2","state":"passed"}`)
		case "GET /v1/sites":
			_, _ = io.WriteString(w, `{"items":[{"id":"site-1","state":"alive","capacity":{"cpu":2}}],"next":""}`)
		}
	}))
}

func Example() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL) // http://127.0.0.1:7700, say
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()

	accepted, err := c.Submit(ctx, []byte(`{"command":["echo","hello"]}`), client.SubmitOptions{Key: "order-17"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(accepted.ID, accepted.State, accepted.Durability)

	out, err := c.Logs(ctx, accepted.ID, client.LogQuery{Follow: true})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	text, err := io.ReadAll(out)
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// site-1.1 queued federation
	// hello
	// <nil>
}

// A job is watched until its end, without asking again and again.
func ExampleClient_Watching() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	w := c.Watching(time.Minute)
	for {
		job, err := w.Job(context.Background(), "site-1.1")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.State)
		if job.State == "succeeded" {
			return
		}
	}
	// Output:
	// queued
	// running
	// succeeded
}

// Events go on over a restart of the broker; what was missed is told.
func ExampleClient_Events() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	q := client.EventQuery{Kinds: []string{"job", "task"}, Patience: time.Minute}
	for e, err := range c.Events(context.Background(), q) {
		switch {
		case errors.Is(err, client.ErrEventsMissed):
			fmt.Println("read the jobs again, as of", e.Index)
			continue
		case err != nil:
			log.Fatal(err)
		}
		fmt.Println(e.ID, e.Kind, e.Job)
		if e.Kind == "job.ended" {
			break
		}
	}
	// Output:
	// 10.1 job.submitted site-1.1
	// 10.2 task.assigned site-1.1
	// read the jobs again, as of 12
	// 13.1 job.ended site-1.1
}

// Many jobs go in one request; one that is refused stops no other.
func ExampleClient_SubmitMany() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	lines := strings.NewReader(`{"command":["true"]}` + "\n" + `{"command":["true"],"count":0}` + "\n")
	err = c.SubmitMany(context.Background(), lines, client.SubmitOptions{}, func(r client.Result) error {
		switch {
		case r.Accepted != nil:
			fmt.Println("accepted", r.Accepted.ID)
		default:
			fmt.Println("line", r.Problem.Line, "refused:", r.Problem.Detail)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// accepted site-1.2
	// line 2 refused: count: must be at least 1
	// <nil>
}

// What a broker refuses is a Problem with a stable type.
func ExampleProblem() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	_, err = c.Job(context.Background(), "site-9.1")
	var p *client.Problem
	if errors.As(err, &p) {
		fmt.Println(p.Status, p.Type, p.Detail)
	}
	// Output:
	// 404 urn:cloudshare:problem:not-found no site site-9
}

// Sites tells who is there and what they have.
func ExampleClient_Sites() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	sites, err := c.Sites(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sites.Items {
		fmt.Println(s.ID, s.State, s.Capacity.CPU)
	}
	// Output:
	// site-1 alive 2
}

// A member invites a site; the other electors approve it.
func ExampleClient_Invite() {
	srv := broker()
	defer srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()

	invited, err := c.Invite(ctx, wire.InviteRequest{Site: "lab-2", For: "48h"})
	if err != nil {
		log.Fatal(err)
	}
	// invited.Token goes to the site's operator, by a way that nobody else reads.
	fmt.Println("waiting for", invited.Waiting)

	m, err := c.Vote(ctx, "lab-2", true) // at the broker of lab-1
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("motion", m.Number, m.State)
	// Output:
	// waiting for [lab-1]
	// motion 7 passed
}
