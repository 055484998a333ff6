package devfed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/access"
)

// A site's token is there before its broker starts, is the one of its data, and is found by address while dev runs.
func TestTokensOfSites(t *testing.T) {
	home := t.TempDir()
	d := &dev{App: &cli.App{Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}}
	s := &devSite{Name: "site-1", Dir: t.TempDir(), HTTP: "127.0.0.1:61000"}
	for range 2 { // a second start changes nothing
		if err := s.writeToken(); err != nil {
			t.Fatal(err)
		}
	}
	path := s.file("token")
	text, err := access.ReadText(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	store, err := access.OpenIn(filepath.Join(s.Dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if token, err := store.Find(text); err != nil || token.Role != access.Operator {
		t.Errorf("%+v, %v", token, err)
	}
	d.tellTokens([]*devSite{s})
	if got, err := d.Token("http://127.0.0.1:61000"); got != text || err != nil {
		t.Errorf("while it runs: %.12s…, %v", got, err)
	}
	d.forgetTokens([]*devSite{s})
	if got, err := d.Token("http://127.0.0.1:61000"); got != "" || err != nil {
		t.Errorf("after its end: %.12s…, %v", got, err)
	}
}
