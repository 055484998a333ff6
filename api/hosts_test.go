package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Found by review: a page whose own name was made to point at the loopback
// could submit jobs, as its origin and the host were the same.
func TestForeignHosts(t *testing.T) {
	f := newFake("site-1")
	s := New(Config{Names: []string{"Broker.Lan:7700", "n1."}}, f, prometheus.NewRegistry(), zerolog.Nop())
	for host, ok := range map[string]bool{
		"127.0.0.1:7700": true, "[::1]:7700": true, "[::1]": true, "10.1.2.3": true, "localhost:7700": true, "LOCALHOST": true,
		"site-1.localhost:7700": true, "localhost.": true, "broker.lan": true, "broker.LAN.:80": true, "n1:7700": true, "": true,
		"evil.example:7700": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"notlocalhost": false, "x.broker.lan": false, "0x7f.1:7700": false, "2130706433": false, "a:b:c": false, "evil.example:7700:1": false,
	} {
		for _, q := range [][2]string{{"GET", "/"}, {"GET", "/v1/status"}, {"POST", "/v1/jobs"}, {"GET", "/livez"}, {"GET", "/docs"}, {"GET", "/login"}, {"GET", "/openapi.json"}} {
			r := httptest.NewRequest(q[0], q[1], strings.NewReader(`{"command":["true"]}`))
			r.Host = host
			r.Header.Set("Content-Type", js)
			r.Header.Set("Origin", "http://"+host)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == ok {
				t.Errorf("%s %s of host %q: %d", q[0], q[1], host, w.Code)
			} else if refused && !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":foreign-host") {
				t.Errorf("%s", w.Body)
			}
		}
	}
}
