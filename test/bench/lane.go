package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// lane is one client's connection that sends one prepared POST again and
// again. It costs a fraction of net/http's client, which would take the cores
// from the brokers that are measured.
type lane struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	body    bytes.Buffer
	held    bool // what the site holds counts, too
}

// answerLimit bounds one request.
const answerLimit = 30 * time.Second

func dialLane(
	ctx context.Context, s *testbed.Site, contentType string, body []byte, authorize func(http.Header),
) (*lane, error) {
	return dialLaneTo(ctx, s, "/v1/jobs", contentType, body, authorize)
}

func dialLaneTo(
	ctx context.Context, s *testbed.Site, path, contentType string, body []byte, authorize func(http.Header),
) (*lane, error) {
	header := http.Header{"Content-Type": {contentType}, "Content-Length": {strconv.Itoa(len(body))}}
	authorize(header)
	conn, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	head.WriteString("POST " + path + " HTTP/1.1\r\nHost: " + s.URL.Host + "\r\n")
	if err = header.Write(&head); err != nil {
		return nil, err
	}
	head.WriteString("\r\n")
	return &lane{conn: conn, in: bufio.NewReader(conn), request: append(head.Bytes(), body...)}, nil
}

// dialLanes connects n clients to the brokers in turn, with the tokens of the brokers' operators.
func dialLanes(ctx context.Context, fed *testbed.Federation, n int, contentType string, body []byte) ([]*lane, error) {
	return dialLanesAs(ctx, fed, n, contentType, body, bySite(fed))
}

// dialLanesAs connects n clients with tokens of their own.
func dialLanesAs(
	ctx context.Context, fed *testbed.Federation, n int, contentType string, body []byte,
	authorize func(client int, h http.Header),
) ([]*lane, error) {
	return dialLanesTo(ctx, fed, n, "/v1/jobs", contentType, body, authorize)
}

func dialLanesTo(
	ctx context.Context, fed *testbed.Federation, n int, path, contentType string, body []byte,
	authorize func(client int, h http.Header),
) ([]*lane, error) {
	lanes := make([]*lane, 0, n)
	for i := range n {
		site := fed.Sites[i%len(fed.Sites)]
		l, err := dialLaneTo(ctx, site, path, contentType, body, func(h http.Header) { authorize(i, h) })
		if err != nil {
			closeLanes(lanes)
			return nil, err
		}
		lanes = append(lanes, l)
	}
	return lanes, nil
}

func closeLanes(lanes []*lane) {
	for _, l := range lanes {
		l.conn.Close()
	}
}

// post sends the request and returns the body of a 2xx answer, valid until the
// next call.
func (l *lane) post() ([]byte, error) {
	if err := l.conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if _, err := l.conn.Write(l.request); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	defer resp.Body.Close()
	l.body.Reset()
	if _, err := l.body.ReadFrom(resp.Body); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("answered %s: %.300s", resp.Status, l.body.Bytes())
	}
	return l.body.Bytes(), nil
}

// postJobs posts and checks that the answer acknowledges n commits: a figure
// of commits must not count what one disk holds, if it is not of held jobs.
func (l *lane) postJobs(n int) (int, error) {
	answer, err := l.post()
	if err != nil {
		return 0, err
	}
	got := bytes.Count(answer, []byte(`"federation"`))
	if l.held {
		got += bytes.Count(answer, []byte(`"durability":"site"`))
	}
	if got != n {
		return 0, fmt.Errorf("%d of %d jobs were committed: %.300s", got, n, answer)
	}
	return n, nil
}
