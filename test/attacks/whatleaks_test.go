//go:build attacks

package attacks

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// TestInvitationInTheCommandLine: whoever gives the text itself to a broker is not shown with it by ps.
func TestInvitationInTheCommandLine(t *testing.T) {
	attacked(t)
	token, _ := invited(t, "shown", map[string]any{"vote": false})
	b := solo.New(t, "shown", "--cores", "1", "--gossip", "127.0.0.1:0", "--join", token)
	if found := inProcesses(t); len(found) > 0 {
		t.Errorf("%v", found)
	}
	text, err := os.ReadFile(filepath.Join(b.Dir, "broker.log"))
	must(t, err)
	if leaks(text) != "" {
		t.Errorf("its log: %s", leaks(text))
	}
	b.End(syscall.SIGTERM)
	must(t, shared.Sites[0].Propose(within(t), "ban", "shown", shared.Sites[1]))
}

// TestNoSecretLeaks: after all that the tests have done, no token and no invitation stands in a log, in what the state
// and
// the journals keep, or in the command line or environment of a process.
func TestNoSecretLeaks(t *testing.T) {
	attacked(t)
	for _, s := range shared.Sites {
		token, err := s.Token()
		must(t, err)
		tokens = append(tokens, token)
	}
	if found := inProcesses(t); len(found) > 0 {
		t.Errorf("%v", found)
	}
	read := 0
	for _, s := range shared.Sites {
		must(t, filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it was renamed meanwhile
			}
			if err != nil {
				return err
			}
			if !d.Type().IsRegular() || filepath.Base(path) == "token" || filepath.Base(path) == "invitation" {
				return nil // where they are to be
			}
			text, err := os.ReadFile(path)
			if err == nil && leaks(text) != "" {
				t.Errorf("%s holds %s", path, leaks(text))
			}
			read++
			return nil
		}))
	}
	if read < 3*4 {
		t.Errorf("only %d files were there", read)
	}
}

// leaks returns the beginning of a secret that stands in a text.
func leaks(text []byte) string {
	for _, secret := range tokens {
		if bytes.Contains(text, []byte(secret)) || len(secret) > 60 && bytes.Contains(text, []byte(secret[20:50])) {
			return secret[:8] + "…"
		}
	}
	return ""
}

// inProcesses returns the processes of this program in whose command line or environment a secret stands.
func inProcesses(t *testing.T) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	ours := 0
	for _, path := range all {
		cmdline, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(cmdline, []byte(solo.Binary)) {
			continue // it has ended, or is another's
		}
		ours++
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		for _, text := range [][]byte{cmdline, environ} {
			if leaks(text) != "" || bytes.Contains(text, []byte("csi_")) || bytes.Contains(text, []byte("cst_")) {
				found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
			}
		}
	}
	if ours < 4 {
		t.Errorf("only %d processes were looked at", ours)
	}
	return found
}
