//go:build attacks

package attacks

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// lure keeps what it is asked, and answers with a page, a cookie and a way elsewhere.
type lure struct {
	mu    sync.Mutex
	asked []http.Header
}

// ServeHTTP implements http.Handler.
func (l *lure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked = append(l.asked, r.Header.Clone())
	l.mu.Unlock()
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Type": "text/html", "Set-Cookie": "lure=1", "Refresh": "0;url=http://lure/", "X-CloudShare-Site": "mallory",
		"Access-Control-Allow-Origin": "*", "Link": "</lure>; rel=preload",
	} {
		h.Set(name, value)
	}
	_, _ = io.WriteString(w, "<script>lure</script>")
}

// headers returns all that it was told.
func (l *lure) headers() (n int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked), fmt.Sprint(l.asked)
}

// TestProxysLure: a member that registers addresses of its own choice gets no user's token or cookie, and no browser
// takes its page for one of this broker's: neither over the peer port by its key, nor at an address of anybody else.
func TestProxysLure(t *testing.T) {
	attacked(t)
	who := mallory(t)
	member, foreign := &lure{}, &lure{}
	port, err := who.Listen(func(map[string]any) any { return nil }, member, nil)
	must(t, err)
	defer port.Close()
	elsewhere := httptest.NewServer(foreign)
	defer elsewhere.Close()
	foreignAddr := strings.TrimPrefix(elsewhere.URL, "http://")
	number := uint64(1)
	for name, at := range map[string]command.Addresses{
		"its own port":   {HTTP: foreignAddr, Peer: port.Addr},
		"a foreign host": {HTTP: foreignAddr, Peer: foreignAddr},
		"a member's":     {HTTP: foreignAddr, Peer: peerOf(t, shared.Sites[1]).Addr},
	} {
		who.register(t, at)
		number++
		_, err := who.order(t, who.own(&command.Submit{Jobs: []command.JobSpec{{
			Num: number, Count: 1, Need: command.Resources{MilliCPU: 1000}, MaxAttempts: 1, Only: []string{"mallory"},
		}}}))
		must(t, err)
		for _, ask := range []string{
			"GET /v1/jobs/%s", "GET /v1/jobs/%s/logs?task=0", "GET /v1/jobs/%s/why", "GET /v1/jobs/%s/tasks", "GET /v1/jobs/%s/kept?tasks=0",
			"GET /jobs/%s", "DELETE /v1/jobs/%s", "POST /v1/jobs/%s/rerun",
		} {
			for _, job := range []string{"mallory.1", fmt.Sprintf("mallory.%d", number)} { // only the owner knows the first
				takesNothing(t, name, fmt.Sprintf(ask, job))
			}
		}
	}
	if n, _ := foreign.headers(); n > 0 {
		t.Errorf("a foreign host was asked %d times", n)
	}
	n, told := member.headers()
	if n == 0 || strings.Contains(told, "secret") || strings.Contains(told, "cst_") || strings.Contains(told, "Cookie") {
		t.Errorf("the member was told in %d questions: %s", n, told)
	}
	who.register(t, command.Addresses{})
}

// takesNothing asks the first broker as a browser would that has logged in, and checks that what it answers is no page,
// cookie or way of the lure's.
func takesNothing(t *testing.T, name, ask string) {
	t.Helper()
	method, path, _ := strings.Cut(ask, " ")
	header := append(bearer(t, shared.Sites[0]), "Cookie", "session=secret-cookie", "Referer", "http://secret-page/")
	res := request(t, shared.Sites[0], method, path, "", header...)
	body, err := io.ReadAll(res.Body)
	must(t, err)
	page := strings.HasPrefix(res.Header.Get("Content-Type"), "text/html")
	if page && strings.Contains(string(body), "<script>lure") || strings.Contains(fmt.Sprint(res.Header), "lure") ||
		res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s: %s: %d %v %.200s", name, ask, res.StatusCode, res.Header, body)
	}
}

// TestHopsOfClients: what only brokers say to each other, a client cannot say.
func TestHopsOfClients(t *testing.T) {
	attacked(t)
	ref := running(t, shared.Sites[1])
	for _, header := range [][]string{
		{"X-CloudShare-Hops", "2"},
		{"X-CloudShare-Means", "site-3/00000000-0000-0000-0000-000000000000"},
		{"X-CloudShare-Here", "true"},
		{"X-CloudShare-Via", "site-3"},
		{"X-CloudShare-Site", "site-3"},
	} {
		res := request(t, shared.Sites[0], "GET", "/v1/jobs/"+ref.Job.String()+"/tasks", "",
			append(header, bearer(t, shared.Sites[0])...)...)
		if res.StatusCode != http.StatusOK ||
			res.Header.Get("X-CloudShare-Site") != "site-2" && res.Header.Get("X-CloudShare-Site") != "site-1" {
			t.Errorf("%v: %d %v", header, res.StatusCode, res.Header)
		}
		res = request(t, shared.Sites[0], "GET", "/v1/status", "", header...)
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v without a token: %d", header, res.StatusCode)
		}
	}
}
