package openid

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An issuer over HTTPS whose description names keys over plain HTTP: whoever is on the way could give his own.
func TestKeysOverPlainHTTPAreRefused(t *testing.T) {
	asked := ""
	k := newKeys("https://id.example.org", time.Now)
	k.client.Transport = answer(func(r *http.Request) any {
		if r.URL.Host != "id.example.org" {
			asked = r.URL.String()
			return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: newKey(t).Public(), KeyID: "a"}}}
		}
		return map[string]any{"issuer": "https://id.example.org", "jwks_uri": "http://keys.example.org/jwks"}
	})
	if got, err := k.find("a"); err == nil || !strings.Contains(err.Error(), "jwks_uri") || asked != "" {
		t.Errorf("%v, %v, asked %q", got, err, asked)
	}
}

// answer is a transport that answers with JSON, without a network.
type answer func(r *http.Request) any

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(a(r))
	return w.Result(), err
}

func TestRedirectsToPlainHTTPAreRefused(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked over plain HTTP") }))
	defer plain.Close()
	for name, to := range map[string]string{"loopback": plain.URL, "elsewhere": "http://keys.example.org"} {
		secure := httptest.NewTLSServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
		c := newKeys(secure.URL, time.Now).client
		c.Transport = secure.Client().Transport
		res, err := c.Get(secure.URL)
		if err == nil {
			res.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "plain HTTP") {
			t.Errorf("%s: %v", name, err)
		}
		secure.Close()
	}
}

func TestCheckEndpoint(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://id.example.org/keys?p=x": true, "http://127.0.0.1:1/keys": true, "http://[::1]/keys": true, "http://localhost/keys": true,
		"http://id.example.org/keys": false, "http://localhost.evil.example/": false, "": false, "/keys": false, "file:///etc/keys": false,
		"https://user@id.example.org/": false, "http://127.0.0.1@evil.example/": false,
	} {
		if err := CheckEndpoint("jwks_uri", text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
