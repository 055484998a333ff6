package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/access"
)

// serveGuarded is newGuarded with a server that listens.
func serveGuarded(t *testing.T, f *fakeBroker) *guarded {
	t.Helper()
	g := newGuarded(t)
	g.Server = serve(t, f, Config{Access: g.store})
	return g
}

// raw sends bytes as they are, and returns the statuses of so many answers on the connection.
func (g *guarded) raw(text string, answers int) (statuses []int) {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.Addr())
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err = io.WriteString(conn, text); err != nil {
		g.t.Fatal(err)
	}
	for in := bufio.NewReader(conn); len(statuses) < answers; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		statuses = append(statuses, res.StatusCode)
	}
	return statuses
}

// A token counts in one place alone, and there once: what a proxy in front has looked at is what the broker looks at.
func TestSmuggledTokens(t *testing.T) {
	g := serveGuarded(t, newFake("site-1"))
	right, wrong := g.token, newGuarded(t).token
	const head = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"alone":                     {head + "Authorization: Bearer " + right + "\r\n\r\n", 200},
		"small letters":             {head + "authorization: bearer " + right + "\r\n\r\n", 200},
		"tabs and spaces around":    {head + "Authorization: \t Bearer " + right + " \t\r\n\r\n", 200},
		"right, then wrong":         {head + "Authorization: Bearer " + right + "\r\nAuthorization: Bearer " + wrong + "\r\n\r\n", 401},
		"wrong, then right":         {head + "Authorization: Bearer " + wrong + "\r\nauthorization: Bearer " + right + "\r\n\r\n", 401},
		"twice the right one":       {head + strings.Repeat("Authorization: Bearer "+right+"\r\n", 2) + "\r\n", 401},
		"empty, then right":         {head + "Authorization:\r\nAuthorization: Bearer " + right + "\r\n\r\n", 401},
		"a list":                    {head + "Authorization: Bearer " + wrong + ", Bearer " + right + "\r\n\r\n", 401},
		"two schemes":               {head + "Authorization: Basic Bearer " + right + "\r\n\r\n", 401},
		"no space":                  {head + "Authorization: Bearer" + right + "\r\n\r\n", 401},
		"folded into another field": {head + "X-Note: a\r\n Authorization: Bearer " + right + "\r\n\r\n", 401},
		"a space before the colon":  {head + "Authorization : Bearer " + right + "\r\n\r\n", 400},
		"a zero byte":               {head + "Authorization: Bearer " + right + "\x00\r\n\r\n", 400},
		"another field's name":      {head + "X-Authorization: Bearer " + right + "\r\n\r\n", 401},
		"an underscore":             {head + "Authorization_: Bearer " + right + "\r\n\r\n", 401},
		"for a proxy":               {head + "Proxy-Authorization: Bearer " + right + "\r\n\r\n", 401},
		"a cookie":                  {head + "Cookie: Authorization=" + right + "; token=" + right + "\r\n\r\n", 401},
		"the query":                 {"GET /v1/status?access_token=" + right + "&token=" + right + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 401},
		"the address":               {"GET http://x:" + right + "@localhost/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 401},
		"a trailer": {"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTrailer: Authorization\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"0\r\nAuthorization: Bearer " + right + "\r\n\r\n", 401},
	} {
		if got := g.raw(c.request, 1); len(got) != 1 || got[0] != c.status {
			t.Errorf("%s: %v, want %d", name, got, c.status)
		}
	}
}

// A connection has no rights of its own: each request on it brings its token, also one that is hidden in a body.
func TestOneConnectionIsNobodys(t *testing.T) {
	g := serveGuarded(t, newFake("site-1"))
	hidden := "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
	auth := "Host: localhost\r\nAuthorization: Bearer " + g.token + "\r\n"
	if got := g.raw("GET /v1/status HTTP/1.1\r\n"+auth+"\r\n"+hidden, 2); len(got) != 2 || got[0] != 200 || got[1] != 401 {
		t.Errorf("one after the other: %v", got)
	}
	inBody := fmt.Sprintf("POST /v1/drain HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", auth, len(hidden), hidden)
	if got := g.raw(inBody+hidden, 2); len(got) > 1 && got[1] != 401 {
		t.Errorf("in a body: %v", got)
	}
	both := "POST /v1/drain HTTP/1.1\r\n" + auth + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden
	for i, status := range g.raw(both, 2) {
		if i == 1 && status != 401 {
			t.Errorf("two lengths: %d", status)
		}
	}
}

// Lengths that two readers may take differently, and fields that go on in the next line, are refused or mean one thing:
// what stands behind a request is another one, without its token.
func TestSmuggledLengths(t *testing.T) {
	g := serveGuarded(t, newFake("site-1"))
	auth := "POST /v1/drain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + g.token + "\r\n"
	hidden := "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		fields string
		first  int // the status of the first answer; 0 = any
	}{
		"two lengths":            {"Content-Length: 0\r\nContent-Length: 4\r\n", 400},
		"a list of lengths":      {"Content-Length: 0, 4\r\n", 400},
		"a sign":                 {"Content-Length: +4\r\n", 400},
		"hexadecimal":            {"Content-Length: 0x4\r\n", 400},
		"negative":               {"Content-Length: -1\r\n", 400},
		"chunked, not at last":   {"Transfer-Encoding: chunked, identity\r\n", 501},
		"another coding":         {"Transfer-Encoding: gzip\r\n", 501},
		"chunked twice":          {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501},
		"a vertical tab":         {"Transfer-Encoding: \x0bchunked\r\n", 400},
		"a space before a colon": {"Content-Length : 4\r\n", 400},
		"a bare return":          {"X-Note: a\rContent-Length: 4\r\n", 400},
		"both":                   {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 0},
		"a fold":                 {"X-Note: a\r\n Content-Length: 40\r\nContent-Length: 0\r\n", 0},
	} {
		got := g.raw(auth+c.fields+"\r\n"+hidden+hidden, 3)
		if len(got) == 0 || c.first != 0 && (got[0] != c.first || len(got) > 1) {
			t.Errorf("%s: %v, want %d alone", name, got, c.first)
		}
		for _, status := range got[min(1, len(got)):] {
			if status != 401 && status != 400 {
				t.Errorf("%s: what stands behind it: %v", name, got)
			}
		}
	}
}

// What a proxy says of a client is not believed: wrong tokens count for the address that sent them, and no header
// makes somebody the operator, another site or a browser's secure page.
func TestForwardedHeaders(t *testing.T) {
	g := newGuarded(t)
	limited := false
	for i := range 200 {
		from := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		w := ask(g.Server, "GET", "/v1/status", "", "", "Authorization", "Bearer cst_x", "X-Forwarded-For", from,
			"X-Real-IP", from, "Forwarded", "for="+from)
		limited = limited || w.Code == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("each forwarded address has wrong tokens of its own")
	}
	for _, header := range []string{
		wire.HeaderSite, "X-Forwarded-User", "X-Remote-User", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Client-Cert",
	} {
		if w := ask(g.Server, "GET", "/v1/status", "", "", header, "localhost"); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", header, w.Code)
		}
	}
}

// A task that reaches the API without a token is told that one is needed, and nothing of the broker: whatever it asks
// for, it gets the same.
func TestNothingWithoutAToken(t *testing.T) {
	g := serveGuarded(t, newFake("site-1"))
	var first string
	for _, line := range []string{
		"GET /v1/status", "GET /v1/jobs/site-1.1", "GET /v1/none", "POST /v1/status", "DELETE /v1/jobs/site-1.1",
		"GET /metrics", "PUT /v1/policy",
	} {
		conn := dialRaw(t, g.Addr())
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", line)
		answer, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`Date: [^\r]*\r\n`).ReplaceAllString(string(answer), "")
		if first == "" {
			first = text
		}
		if text != first || !strings.HasPrefix(text, "HTTP/1.1 401 ") ||
			strings.Contains(text, "site-1") || strings.Contains(text, wire.HeaderIndex) {
			t.Errorf("%s:\n%s\nwant\n%s", line, text, first)
		}
	}
}

// dialRaw opens a connection that ends with the test.
func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// writeOnly leaves what comes to somebody else.
type writeOnly struct{ net.Conn }

// Read implements net.Conn.
func (writeOnly) Read([]byte) (int, error) { return 0, io.EOF }

// A method in a header, or another path there, changes nothing of what a role may do.
func TestSmuggledMethods(t *testing.T) {
	g := newGuarded(t)
	readOnly := g.create(access.ReadOnly, time.Time{})
	id := g.store.List()[0].ID
	for _, header := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		w := ask(g.Server, "GET", "/v1/jobs", "", "", append(bearer(readOnly), header, "DELETE")...)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", header, w.Code)
		}
		ask(g.Server, "GET", "/v1/whoami?_method=DELETE", "", "", append(bearer(readOnly), header, "DELETE")...)
	}
	for _, header := range []string{"X-Original-URL", "X-Rewrite-URL"} {
		ask(g.Server, "POST", "/logout", "", "", append(bearer(readOnly), header, "/v1/tokens/"+id)...)
	}
	if len(g.store.List()) != 2 {
		t.Error("a token is gone")
	}
}
