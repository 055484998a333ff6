package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// revoker is a provider that notes what it is to revoke, at an endpoint with a path or of another server.
func revoker(t *testing.T, endpoint string, status int) (issuer string, got chan string) {
	t.Helper()
	got = make(chan string, 1)
	var p *httptest.Server
	p = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/revoke" {
			_ = r.ParseForm()
			got <- r.PostForm.Encode()
			w.WriteHeader(status)
			return
		}
		said := map[string]string{"issuer": p.URL, "token_endpoint": p.URL + "/t"}
		if endpoint != "" {
			said["revocation_endpoint"] = strings.Replace(endpoint, "SELF", p.URL, 1)
		}
		_ = json.NewEncoder(w).Encode(said)
	}))
	t.Cleanup(p.Close)
	return p.URL, got
}

// A login is revoked by its refresh token, which goes nowhere but to the provider, by a safe way.
func TestRevoke(t *testing.T) {
	for _, c := range []struct {
		endpoint, refresh string
		status            int
		sent              bool
		want              string
	}{
		{"SELF/revoke", "r1", 200, true, ""},
		{"SELF/revoke", "r1", 503, true, "answers 503"},
		{"", "r1", 200, false, "no revocation endpoint"},
		{"http://id.example.org/revoke", "r1", 200, false, "must be https"},
		{"SELF/revoke", "", 200, false, "nothing that could be renewed"},
	} {
		issuer, got := revoker(t, c.endpoint, c.status)
		err := Login{Issuer: issuer, Client: "cli", IDToken: "eyJ", Refresh: c.refresh}.Revoke(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.sent {
			if form := <-got; form != "client_id=cli&token=r1&token_type_hint=refresh_token" {
				t.Errorf("sent %s", form)
			}
		} else if len(got) > 0 {
			t.Errorf("%+v: it was sent", c)
		}
	}
}
