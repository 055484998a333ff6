package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/access"
)

// tokenFile returns a file with a token, and the token.
func tokenFile(t *testing.T) (path, text string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := access.OpenIn(dir); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, access.OperatorFile)
	text, err := access.ReadText(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, text
}

// The flag counts before the environment, and that before a context; the first two are for the broker at --addr alone.
func TestWhichToken(t *testing.T) {
	byFlag, flagText := tokenFile(t)
	byContext, contextText := tokenFile(t)
	_, envText := tokenFile(t)
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "CLOUDSHARE_TOKEN": "7"}
	a := &App{Getenv: func(name string) string { return env[name] }, Addr: DefaultAddr}
	want := func(what, addr, text string) {
		t.Helper()
		if got, err := a.Token(addr); got != text || err != nil {
			t.Errorf("%s: %.12s…, %v", what, got, err)
		}
	}
	want("nothing is known", DefaultAddr, "")
	const other = "http://127.0.0.1:7701"
	contexts := map[string]string{"127.0.0.1:7700": byContext, other: byContext}
	if err := a.Contexts().Add(contexts); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{DefaultAddr, "127.0.0.1:7700", "http://localhost:7700/", "LOCALHOST:7700"} {
		want("context", addr, contextText)
	}
	want("another address", "http://127.0.0.1:7702", "")
	want("another scheme", "https://127.0.0.1:7700", "")
	byEnv, byEnvText := tokenFile(t)
	env["CLOUDSHARE_API_TOKEN_FILE"] = byEnv
	want("file in the environment", DefaultAddr, byEnvText)
	env["CLOUDSHARE_API_TOKEN"] = envText
	want("environment", DefaultAddr, envText)
	a.TokenFile = byFlag
	want("flag", DefaultAddr, flagText)
	want("another broker than that at --addr", other, contextText)
	a.Addr = "unix:///d/api.sock"
	want("flag, by the operator's socket", a.Addr, flagText)
	a.TokenFile = ""
	want("the operator's socket needs none", a.Addr, "")
	a.Addr = DefaultAddr
	env["CLOUDSHARE_API_TOKEN"] = "cst_secret"
	if _, err := a.Token(DefaultAddr); CodeOf(err) != ExitUsage || strings.Contains(err.Error(), "secret") {
		t.Errorf("a mistyped token: %v", err)
	}
	a.TokenFile = filepath.Join(t.TempDir(), "none")
	if _, err := a.Token(DefaultAddr); CodeOf(err) != ExitUsage || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}

func TestContextsComeAndGo(t *testing.T) {
	mine, text := tokenFile(t)
	others, _ := tokenFile(t)
	gone := filepath.Join(t.TempDir(), "gone")
	env := map[string]string{"HOME": t.TempDir()}
	a := &App{Getenv: func(name string) string { return env[name] }}
	c := a.Contexts()
	all := map[string]string{"127.0.0.1:1": mine, "127.0.0.1:2": mine}
	for _, files := range []map[string]string{{"127.0.0.1:3": gone}, all, {"127.0.0.1:2": others}} {
		if err := c.Add(files); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := c.Token("127.0.0.1:1"); got != text || err != nil {
		t.Errorf("%.12s…, %v", got, err)
	}
	path := filepath.Join(env["HOME"], ".config", "cloudshare", "contexts.json")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if err := c.Remove(all); err != nil {
		t.Fatal(err)
	}
	left, err := c.read()
	if err != nil || len(left.Contexts) != 1 || left.Contexts["http://127.0.0.1:2"].TokenFile != others {
		t.Errorf("left: %v, %v", left, err)
	}
	if err = os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Token("127.0.0.1:2"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
	}
}

// Without a home there are no contexts, and that is no fault.
func TestNoHome(t *testing.T) {
	a := &App{Getenv: func(string) string { return "" }}
	if err := a.Contexts().Add(map[string]string{"127.0.0.1:1": "/token"}); err != nil {
		t.Error(err)
	}
	if text, err := a.Contexts().Token("127.0.0.1:1"); text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
