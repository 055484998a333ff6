package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever has lost the operator's token makes another one at the broker's machine, while the broker runs.
func TestLostTokens(t *testing.T) {
	s := start(t, 1, 1).Sites[0]
	addr, socket := s.URL.String(), "unix://"+filepath.Join(s.Dir, "data", "api.sock")
	text, err := s.Token()
	must(t, err)
	id := strings.Split(text, "_")[1]
	wantCommand(t, 0, []string{id + " is revoked"}, "token", "revoke", id, "--addr", addr, "--token-file", s.TokenFile())
	wantCommand(t, 5, []string{"unauthenticated", "api.sock"}, "whoami", "--addr", addr, "--token-file", s.TokenFile())
	wantCommand(t, 0, []string{"none is needed here"}, "whoami", "--addr", socket)
	must(t, os.Remove(s.TokenFile()))
	wantCommand(t, 0, []string{"a token of the site, role operator"}, "token", "create", "operator", "--role", "operator",
		"--out", s.TokenFile(), "--addr", socket)
	wantCommand(t, 0, []string{"operator", "never"}, "token", "list", "--addr", addr, "--token-file", s.TokenFile())
}
