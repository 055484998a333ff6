package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

const lab = "lab.example:7700"

// login holds for an hour; of it, nobody checks the token.
func login(issuer, client string) Login {
	return Login{Issuer: issuer, Client: client, IDToken: "eyJ.x.x", Expires: time.Now().Add(time.Hour)}
}

// What was kept of https is sent by https, however the address is typed, and a logout ends it.
func TestAddressWithoutScheme(t *testing.T) {
	a, _ := appAt(t)
	c := a.Contexts()
	if err := c.Name("lab", "https://"+lab, Context{Pin: strings.Repeat("ab", 32)}); err != nil {
		t.Fatal(err)
	}
	a.Addr = lab
	if err := c.KeepLogin(lab, login("https://id", "c")); err != nil {
		t.Fatal(err)
	}
	for _, a.Addr = range []string{lab, "https://" + lab, "HTTPS://LAB.example:7700"} {
		asked, err := a.ClientOf(a.Addr)
		if err != nil || !strings.HasPrefix(asked.Addr(), "https://") {
			t.Errorf("%s: %v", a.Addr, err)
		}
		if text, err := a.Token(a.Addr); text == "" || err != nil {
			t.Errorf("%s: no token, %v", a.Addr, err)
		}
	}
	if was, err := c.EndLogin(lab); was == nil || err != nil {
		t.Errorf("logout: %v, %v", was, err)
	}
	if text, err := c.Token(lab); text != "" || err != nil {
		t.Errorf("logged out, but %q, %v", text, err)
	}
}

func TestResolve(t *testing.T) {
	a, _ := appAt(t)
	if err := a.Contexts().Name("s", "https://127.0.0.1:9", Context{CAFile: "/ca"}); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"127.0.0.1:1": "http://127.0.0.1:1", "localhost:1": "http://localhost:1", "[::1]:1": "http://[::1]:1",
		"127.0.0.1:9": "https://127.0.0.1:9", lab: "https://" + lab, "10.0.0.1": "https://10.0.0.1",
		"HTTP://x": "http://x", "http://" + lab: "http://" + lab, "UNIX:///S": "unix:///S",
	} {
		if got, err := a.Resolve(addr); got != want || err != nil {
			t.Errorf("%s: %s, %v", addr, got, err)
		}
	}
	a.Addr, a.CAFile = "127.0.0.1:1", "/ca"
	if got, err := a.Resolve(a.Addr); got != "https://127.0.0.1:1" || err != nil {
		t.Errorf("with authorities: %s, %v", got, err)
	}
}

// A token goes over plain HTTP on loopback, and beyond only if somebody says so.
func TestNoTokenInPlain(t *testing.T) {
	file, text := tokenFile(t)
	for what, set := range map[string]func(*App, map[string]string){
		"flag":        func(a *App, _ map[string]string) { a.TokenFile = file },
		"environment": func(_ *App, env map[string]string) { env[TokenVariable] = text },
		"JWT":         func(_ *App, env map[string]string) { env[TokenVariable] = "eyJ.x.x" },
		"context": func(a *App, _ map[string]string) {
			if err := a.Contexts().Name("lab", "http://"+lab, Context{TokenFile: file}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		a, env := appAt(t)
		set(a, env)
		for _, a.Addr = range []string{"http://" + lab, "HTTP://" + lab} {
			if _, err := a.ClientOf(a.Addr); CodeOf(err) != ExitUsage || !strings.Contains(err.Error(), "--plain") {
				t.Errorf("%s, %s: %v", what, a.Addr, err)
			}
		}
		env[PlainVariable] = "1"
		if _, err := a.ClientOf(a.Addr); err != nil {
			t.Errorf("%s: allowed, but %v", what, err)
		}
		delete(env, PlainVariable)
		if _, err := a.NamelessClient(a.Addr); err != nil {
			t.Errorf("%s: none is sent, but %v", what, err)
		}
		for _, a.Addr = range []string{"http://127.0.0.2:1", "http://localhost:1", "http://[::1]:1", "https://" + lab} {
			if _, err := a.ClientOf(a.Addr); err != nil {
				t.Errorf("%s, %s: %v", what, a.Addr, err)
			}
		}
	}
}

// A pinned token is for HTTPS, also where authorities are named, and whatever the scheme's letters and --plain.
func TestPinnedTokenInPlain(t *testing.T) {
	_, text := tokenFile(t)
	pinned, err := access.WithPin(text, &access.Pin{1})
	if err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{"", filepath.Join(t.TempDir(), "ca")} {
		a, env := appAt(t)
		a.CAFile, a.Plain, env[TokenVariable] = ca, true, pinned
		for _, a.Addr = range []string{"http://" + lab, "HTTP://" + lab, "hTTp://127.0.0.1:1"} {
			if _, err := a.ClientOf(a.Addr); CodeOf(err) != ExitUsage || !strings.Contains(err.Error(), "https://") {
				t.Errorf("%s, authorities %q: %v", a.Addr, ca, err)
			}
		}
	}
}

// Who names authorities wants HTTPS.
func TestAuthoritiesInPlain(t *testing.T) {
	a, env := appAt(t)
	env[CAVariable] = filepath.Join(t.TempDir(), "ca")
	for _, a.Addr = range []string{"http://" + lab, DefaultAddr} {
		if _, err := a.ClientOf(a.Addr); CodeOf(err) != ExitUsage || !strings.Contains(err.Error(), "authorities to trust") {
			t.Errorf("%s: %v", a.Addr, err)
		}
	}
	if err := a.Contexts().Name("x", "HTTP://"+lab, Context{CAFile: "/ca"}); CodeOf(err) != ExitUsage {
		t.Errorf("kept: %v", err)
	}
}
