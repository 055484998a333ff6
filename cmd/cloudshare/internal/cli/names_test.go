package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// appAt has its contexts in a folder of the test.
func appAt(t *testing.T) (a *App, env map[string]string) {
	t.Helper()
	env = map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
	return &App{Getenv: func(name string) string { return env[name] }}, env
}

func TestWhichBroker(t *testing.T) {
	a, env := appAt(t)
	want := func(what, addr, words string) {
		t.Helper()
		a.Addr = "http://typed:1" // as the flags' default would be
		err := a.chooseAddr(false)
		told := err != nil && words != "" && strings.Contains(err.Error(), words)
		if !told && (err != nil || words != "" || a.Addr != addr) {
			t.Errorf("%s: %s, %v", what, a.Addr, err)
		}
	}
	want("no contexts", "http://typed:1", "")
	c := a.Contexts()
	for _, n := range []string{"x", "y"} {
		if err := c.Name(n, "http://"+n+":1", Context{}); err != nil {
			t.Fatal(err)
		}
	}
	want("the first name", "http://x:1", "")
	if err := c.Use("y"); err != nil {
		t.Fatal(err)
	}
	want("the current one", "http://y:1", "")
	env["CLOUDSHARE_CONTEXT"] = "x"
	want("environment", "http://x:1", "")
	env["CLOUDSHARE_ADDR"] = "http://typed:1"
	want("an address in the environment", "http://typed:1", "")
	a.Context = "y"
	want("flag", "http://y:1", "")
	if err := a.chooseAddr(true); CodeOf(err) != ExitUsage {
		t.Errorf("both flags: %v", err)
	}
	a.Context = "z"
	want("unknown", "", `"z"`)
	a.Context = ""
	if err := c.Forget("y"); err != nil {
		t.Fatal(err)
	}
	clear(env)
	want("nothing", "http://typed:1", "")
}

func TestNames(t *testing.T) {
	a, _ := appAt(t)
	c := a.Contexts()
	file, _ := tokenFile(t)
	for _, name := range []string{"", "-x", "a b", "a/b", strings.Repeat("a", 64)} {
		if err := c.Name(name, "http://a:1", Context{}); CodeOf(err) != ExitUsage {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := c.Name("a", "http://a:1", Context{TokenFile: file}); err != nil {
		t.Fatal(err)
	}
	if err := c.Name("again", "http://a:1/", Context{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Name("a", "http://b:1", Context{}); CodeOf(err) != ExitUsage {
		t.Errorf("a name twice: %v", err)
	}
	got, err := c.List()
	if err != nil || len(got) != 2 || got[0] != (Named{"a", "http://a:1", true, "file"}) {
		t.Errorf("%v, %v", got, err)
	}
	if err = c.Forget("a"); err != nil {
		t.Fatal(err)
	}
	if text, err := c.Token("http://a:1"); err != nil || text == "" {
		t.Errorf("what another name needs is gone: %v", err)
	}
	if err = c.Forget("again"); err != nil {
		t.Fatal(err)
	}
	if text, err := c.Token("http://a:1"); err != nil || text != "" {
		t.Errorf("what nobody names is kept: %v", err)
	}
	for _, err := range []error{c.Use("a"), c.Forget("a")} {
		if CodeOf(err) != ExitUsage {
			t.Error(err)
		}
	}
}

// A login that holds is used as it is; one that cannot be renewed says what to do.
func TestLogins(t *testing.T) {
	a, _ := appAt(t)
	c := a.Contexts()
	l := Login{Issuer: "http://127.0.0.1:1", IDToken: "x", Expires: time.Now().Add(time.Hour)}
	if err := c.KeepLogin(DefaultAddr, l); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(c.path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	want := func(what, text, words string) {
		t.Helper()
		got, err := c.Token(DefaultAddr)
		if got != text || (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	want("it holds", "x", "")
	for what, in := range map[string]time.Duration{"x": renewBefore / 2, "": -1} {
		for _, l.Refresh = range []string{"", "r"} {
			l.Expires = time.Now().Add(in)
			if err := c.KeepLogin(DefaultAddr, l); err != nil {
				t.Fatal(err)
			}
			words := map[string]string{"x": "", "": "cloudshare login"}[what]
			if l.Refresh != "" && words != "" {
				words = "ask the identity provider"
			}
			want(fmt.Sprintf("%s, refresh %q", in, l.Refresh), what, words)
		}
	}
	if was, err := c.EndLogin(DefaultAddr); was == nil || err != nil {
		t.Error(was, err)
	}
	if was, err := c.EndLogin(DefaultAddr); was != nil || err != nil {
		t.Error(was, err)
	}
	want("logged out", "", "")
}
