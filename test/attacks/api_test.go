//go:build attacks

package attacks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// open are the paths that everybody may ask for.
var openPaths = map[string]bool{"/livez": true, "/readyz": true, "/openapi.json": true, "/docs": true}

// operations returns all of the API, as METHOD PATH with parameters filled in.
func operations(t *testing.T) (all []string) {
	t.Helper()
	res := request(t, shared.Sites[0], "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]any
	}
	must(t, json.NewDecoder(res.Body).Decode(&doc))
	for path, methods := range doc.Paths {
		for method := range methods {
			p := strings.NewReplacer("{id}", "site-1.1", "{site}", "site-1", "{motion}", "1").Replace(path)
			all = append(all, strings.ToUpper(method)+" "+p)
		}
	}
	if len(all) < 20 {
		t.Fatalf("the API has only %v", all)
	}
	return all
}

// TestNothingWithoutAToken: every operation needs one, whatever comes in its place.
func TestNothingWithoutAToken(t *testing.T) {
	attacked(t)
	token, err := shared.Sites[1].Token() // another site's
	must(t, err)
	for _, op := range operations(t) {
		method, path, _ := strings.Cut(op, " ")
		for what, header := range map[string][]string{
			"nothing": nil, "another site's token": {"Authorization", "Bearer " + token}, "a cookie": {"Cookie", "session=1; cloudshare=1"},
			"Basic": {"Authorization", "Basic b3BlcmF0b3I6"},
		} {
			res := request(t, shared.Sites[0], method, path, "{}", append(header, "Content-Type", "application/json")...)
			switch {
			case openPaths[path]:
				if res.StatusCode != http.StatusOK {
					t.Errorf("%s with %s: %d", op, what, res.StatusCode)
				}
			case res.StatusCode == http.StatusTooManyRequests && header != nil && header[0] == "Authorization":
			case res.StatusCode != http.StatusUnauthorized:
				t.Errorf("%s with %s: %d", op, what, res.StatusCode)
			}
		}
	}
	for _, path := range []string{"/", "/metrics", "/jobs", "/members", "/v1/nothing", "/debug/pprof/", "/assets/../v1/status", "/livez/../v1/jobs"} {
		res := request(t, shared.Sites[0], "GET", path, "")
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode == http.StatusOK || strings.Contains(string(body), "site-2") {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
}

// TestGuessedTokens: they are looked at slowly, and the right one is taken meanwhile.
func TestGuessedTokens(t *testing.T) {
	attacked(t)
	seen := map[int]int{}
	for i := range 100 {
		guess := fmt.Sprintf("Bearer cst_%026d", i)
		seen[request(t, shared.Sites[0], "GET", "/v1/status", "", "Authorization", guess).StatusCode]++
		if i%10 == 0 {
			res := request(t, shared.Sites[0], "GET", "/v1/status", "", bearer(t, shared.Sites[0])...)
			if res.StatusCode != http.StatusOK {
				t.Errorf("the right one: %d", res.StatusCode)
			}
		}
	}
	if seen[http.StatusTooManyRequests] == 0 || seen[http.StatusOK] > 0 {
		t.Errorf("%v", seen)
	}
}

// TestForeignPages: a page whose name was made to point here, and one elsewhere that sends a form, have nothing done,
// even
// with the operator's token.
func TestForeignPages(t *testing.T) {
	attacked(t)
	token := bearer(t, shared.Sites[0])
	port := shared.Sites[0].URL.Port()
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port, "0x7f.1:" + port} {
		for _, path := range []string{"/", "/v1/status", "/login"} {
			res := request(t, shared.Sites[0], "GET", path, "", append(token, "Host", host)...)
			if res.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("%s of host %s: %d", path, host, res.StatusCode)
			}
		}
	}
	forms := []string{
		"Content-Type",
		"application/x-www-form-urlencoded",
		"Sec-Fetch-Site",
		"cross-site",
		"Origin",
		"http://evil.example",
	}
	jsons := []string{"Content-Type", "application/json", "Origin", "http://evil.example"}
	for _, target := range []string{"/v1/jobs", "/v1/cancel?state=queued", "/v1/motions", "/v1/drain", "/jobs/site-1.1/cancel", "/login", "/logout", "/members/ban"} {
		for _, header := range [][]string{forms, jsons, append(jsons, "Sec-Fetch-Site", "same-site")} {
			res := request(t, shared.Sites[0], "POST", target, `{"command":["true"]}`, append(header, token...)...)
			if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusNotFound &&
				res.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s by %v: %d", target, header, res.StatusCode)
			}
		}
	}
}

// TestBrokersAskLittle: over the peer port another site's broker asks for the outline of jobs, and nothing that takes
// their owner or an operator, with whatever token.
func TestBrokersAskLittle(t *testing.T) {
	attacked(t)
	who := mallory(t)
	may := map[string]bool{
		"GET /v1/jobs/site-1.1": true, "GET /v1/jobs/site-1.1/tasks": true, "GET /v1/jobs/site-1.1/why": true,
		"GET /v1/jobs/site-1.1/graph": true, // of another site's job it has that job alone
		"GET /v1/wait":                true, "GET /v1/contact": true,
	}
	conn, err := who.Dial(within(t), peerOf(t, shared.Sites[0]), relay.KindHTTP)
	must(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	for _, op := range append(operations(t), "GET /", "GET /metrics", "GET /jobs", "POST /login", "GET /debug/pprof/", "GET /v1/jobs/../status") {
		if may[op] {
			continue
		}
		method, path, _ := strings.Cut(op, " ")
		_, err := fmt.Fprintf(
			conn,
			"%s %s HTTP/1.1\r\nHost: site-1\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
			method,
			path,
			strings.Join(bearer(t, shared.Sites[0]), ": "),
		)
		must(t, err)
		res, err := http.ReadResponse(in, &http.Request{Method: method}) // one to HEAD has no body
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", op, res.StatusCode)
		}
		if res.Close {
			conn, err = who.Dial(within(t), peerOf(t, shared.Sites[0]), relay.KindHTTP)
			must(t, err)
			in = bufio.NewReader(conn)
		}
	}
}
