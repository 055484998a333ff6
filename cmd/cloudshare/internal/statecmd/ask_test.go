package statecmd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// A broker is found by its address whether it speaks HTTP or HTTPS, by a certificate that nobody here knows.
func TestAskAlive(t *testing.T) {
	broker := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(wire.HeaderSite, "a")
		w.Header().Set(wire.HeaderIndex, "7")
	})
	other := http.NotFoundHandler()
	for what, tc := range map[string]struct {
		server *httptest.Server
		want   life
	}{
		"HTTP":                        {httptest.NewServer(broker), life{"a", 7}},
		"HTTPS":                       {httptest.NewTLSServer(broker), life{"a", 7}},
		"another program":             {httptest.NewServer(other), life{}},
		"another program, with HTTPS": {httptest.NewTLSServer(other), life{}},
	} {
		t.Cleanup(tc.server.Close)
		_, addr, _ := strings.Cut(tc.server.URL, "://")
		if got, err := askAlive(t.Context(), addr); got != tc.want || (err == nil) != (got != life{}) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}
