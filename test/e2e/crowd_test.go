package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// crowd is how many clients connect to one broker and stay.
const crowd = 10_000

// mostMiB is what they may cost the broker, whatever their number: it keeps 4096
// connections, some 45 KiB each with what the garbage collector needs.
const mostMiB = 400

// TestTenThousandConnections: ten thousand clients that send nothing, a header
// without an end, a body without an end, or follow events keep nobody else out,
// and cost the broker little memory. Once they are gone all is as before.
func TestTenThousandConnections(t *testing.T) {
	clients := min(crowd, openFiles(t)-500)
	fed := start(t, 1, 1)
	site := fed.Sites[0]
	pid, err := site.PID()
	must(t, err)
	before, err := site.ResidentMiB()
	must(t, err)

	token, err := site.Token()
	must(t, err)
	began := time.Now()
	leave := crowdAt(t, site.URL.Host, clients, []string{
		"", "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
		"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n\r\n",
	})
	t.Logf("%d clients were there after %s", clients, time.Since(began).Round(time.Millisecond))
	slowest := time.Duration(0)
	for i := range 20 {
		asked := time.Now()
		if err := probe(within(t), site, i); err != nil {
			t.Errorf("in the crowd: %v", err)
		}
		slowest = max(slowest, time.Since(asked))
	}
	during, err := site.ResidentMiB()
	must(t, err)
	t.Logf("a new client was answered within %s; the broker went from %.0f to %.0f MiB", slowest.Round(time.Millisecond), before, during)
	if during-before > mostMiB {
		t.Errorf("the crowd costs %.0f MiB", during-before)
	}
	leave()
	a := submit(t, site, testbed.Spec{Command: []string{"true"}})
	awaitEnd(t, site, a.ID)
	if now, err := site.PID(); err != nil || now != pid || !site.Alive() {
		t.Errorf("broker %d is now %d, %v", pid, now, err)
	}
}

// openFiles raises the bound of this process, and returns it.
func openFiles(t *testing.T) int {
	t.Helper()
	var lim syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim))
	lim.Cur = lim.Max
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim))
	return int(min(lim.Max, 1<<20))
}

// crowdAt connects clients that send one of the texts and stay, whatever comes,
// and returns once all have tried to. They have no goroutines of their own: the
// race detector bears 8128.
func crowdAt(t *testing.T, addr string, clients int, texts []string) (leave func()) {
	t.Helper()
	conns := make([]net.Conn, clients)
	next := make(chan int)
	var dialers sync.WaitGroup
	for range 64 { // at a time: the listener's queue is not what is tried
		dialers.Go(func() {
			for i := range next {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
				if err != nil {
					t.Error(err)
					continue
				}
				conns[i] = conn
				_, _ = io.WriteString(conn, texts[i%len(texts)]) // the broker may have hung up
			}
		})
	}
	for i := range clients {
		next <- i
	}
	close(next)
	dialers.Wait()
	leave = sync.OnceFunc(func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	})
	t.Cleanup(leave)
	return leave
}

// probe is what others want of the broker, on connections of their own.
func probe(ctx context.Context, site *testbed.Site, n int) error {
	own := &http.Transport{DisableKeepAlives: true}
	defer own.CloseIdleConnections()
	client := &http.Client{Transport: own, Timeout: 10 * time.Second}
	method, path, body := http.MethodGet, "/livez", ""
	if n%2 == 1 {
		method, path, body = http.MethodPost, "/v1/jobs", `{"command":["true"]}`
	}
	req, err := http.NewRequestWithContext(ctx, method, site.URL.String()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	site.Authorize(req.Header)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	return nil
}
