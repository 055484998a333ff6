package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/invitation"
)

// TestInvitation: the text itself, a file and stdin are the same; what is wrong is said in one line without the text,
// which is a secret.
func TestInvitation(t *testing.T) {
	v := invitation.Invitation{
		Federation: [16]byte{1}, Site: "b", Inviter: [16]byte{2}, Addresses: []string{"10.0.0.1:7701"}, Seed: [32]byte{3},
	}
	text, err := v.Text()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "invitation")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ join, stdin, site, says string }{
		"text":          {join: text},
		"file":          {join: "@" + file},
		"stdin":         {join: "-", stdin: text},
		"none":          {},
		"another site":  {join: text, site: "c", says: "the invitation is for site b, and this is site c"},
		"mistyped":      {join: text[:len(text)-1] + "x", says: "damaged"},
		"cut off":       {join: "-", stdin: text[:40], says: "damaged"},
		"nothing":       {join: "-", says: "no invitation"},
		"no file":       {join: "@" + filepath.Join(dir, "none"), says: "no such file"},
		"a file unsaid": {join: "@", says: "@ names no file"},
		"a word":        {join: "lab-b", says: "cloudshare invite NAME"},
	} {
		cfg := Default()
		cfg.Site, cfg.Join = "b", c.join
		if c.site != "" {
			cfg.Site = c.site
		}
		got, err := cfg.Invitation(strings.NewReader(c.stdin))
		switch {
		case c.says == "" && (err != nil || (got == nil) != (c.join == "") || got != nil && got.Seed != v.Seed):
			t.Errorf("%s: %v, %v", name, got, err)
		case c.says != "" && (cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), c.says) ||
			strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), text[20:40])):
			t.Errorf("%s: exit %d, %v", name, cli.CodeOf(err), err)
		}
	}
}
