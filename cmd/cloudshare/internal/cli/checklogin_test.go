package cli

import (
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// An ID token of another issuer, or for another client, is no login.
func TestWhoseIDToken(t *testing.T) {
	for claims, words := range map[string]string{
		`{"iss":"https://id","aud":"c","exp":4e9}`:            "",
		`{"iss":"https://id","aud":["d","c"],"exp":4e9}`:      "",
		`{"iss":"https://other","aud":"c","exp":4e9}`:         "https://other",
		`{"iss":"https://id","aud":"d","exp":4e9}`:            `"d"`,
		`{"iss":"https://id","aud":["d","cc"],"exp":4e9}`:     "client",
		`{"iss":"https://id","exp":4e9}`:                      "client",
		`{"iss":"https://id","aud":{"c":1},"exp":4000000000}`: "no ID token",
	} {
		id := "eyJ." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
		_, err := login("https://id", "c").With((&oauth2.Token{}).WithExtra(map[string]any{"id_token": id}))
		if (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", claims, err)
		}
	}
}

// A broker cannot have its users log in as another one's, nor change the provider that it has named.
func TestProviderMixUp(t *testing.T) {
	a, _ := appAt(t)
	c := a.Contexts()
	mine := login("https://id", "c")
	if err := c.KeepLogin("https://a:1", mine); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		addr   string
		login  Login
		shared bool
		words  string
	}{
		{"https://a:1", mine, false, ""},
		{"https://A:1/", mine, false, ""},
		{"a:1", login("https://id", "d"), true, "logout first"},
		{"https://a:1", login("https://id2", "c"), true, "logout first"},
		{"https://b:1", mine, false, "--shared-client"},
		{"https://a:2", mine, false, "--shared-client"},
		{"https://b:1", mine, true, ""},
		{"https://b:1", login("https://id", "d"), false, ""},
	} {
		err := c.CheckLogin(x.addr, x.login, x.shared)
		refused := err != nil && CodeOf(err) == ExitRefused && strings.Contains(err.Error(), x.words)
		if refused != (x.words != "") || !refused && err != nil {
			t.Errorf("%s, %s: %v", x.addr, x.login.Client, err)
		}
	}
	if _, err := c.EndLogin("a:1"); err != nil {
		t.Fatal(err)
	}
	if err := c.CheckLogin("https://a:1", login("https://id2", "d"), false); err != nil {
		t.Errorf("logged out: %v", err)
	}
}
