package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A provider's description that names plain HTTP would have the refresh token read on the way.
func TestLoginRefusesPlainHTTP(t *testing.T) {
	for _, unsafe := range []string{"", "token_endpoint", "device_authorization_endpoint"} {
		var p *httptest.Server
		p = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			at := map[string]string{"issuer": p.URL, "token_endpoint": p.URL + "/t", "device_authorization_endpoint": p.URL + "/d"}
			if unsafe != "" {
				at[unsafe] = "http://id.example.org/x"
			}
			_ = json.NewEncoder(w).Encode(at)
		}))
		_, _, err := Login{Issuer: p.URL, Client: "cli"}.Provider(t.Context())
		if (err == nil) != (unsafe == "") || err != nil && !strings.Contains(err.Error(), unsafe) {
			t.Errorf("%q: %v", unsafe, err)
		}
		p.Close()
	}
}
