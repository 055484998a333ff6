package logincmd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// A broker that names the provider and client of another one gets no token, nor does the user see a code.
func TestLoginForAnotherBroker(t *testing.T) {
	var tokens atomic.Int32
	const issuer = "https://id.example"
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="cloudshare", issuer="`+issuer+`", client_id="a", scope="openid"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer evil.Close()
	dir := t.TempDir()
	a := &cli.App{Addr: evil.URL, Getenv: func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": dir}[name]
	}}
	kept := cli.Login{Issuer: issuer, Client: "a", IDToken: "eyJ.x.x", Expires: time.Now().Add(time.Hour)}
	if err := a.Contexts().KeepLogin("https://a.example", kept); err != nil {
		t.Fatal(err)
	}
	err := login(t.Context(), a, false)
	if cli.CodeOf(err) != cli.ExitRefused || !strings.Contains(err.Error(), "--shared-client") || tokens.Load() != 0 {
		t.Errorf("%v; %d tokens were sent", err, tokens.Load())
	}
}

// Who stands between could name any provider: --plain does not help.
func TestLoginInPlain(t *testing.T) {
	for _, addr := range []string{"http://lab.example:1", "HTTP://192.0.2.1:1"} {
		a := &cli.App{Addr: addr, Plain: true}
		if err := login(t.Context(), a, false); cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "use https://") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
