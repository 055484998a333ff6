package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Found by a user: a broker removed deep leftovers for half a minute before it served, and
// its log was empty.
func TestLeftoversAreTold(t *testing.T) {
	log := new(lines)
	cfg := logged(t, log)
	for _, name := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, "slots", name, "work", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := open(t, cfg)
	if _, err := o.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "removing what is left") != 1 || !strings.Contains(got, `"slots":2`) {
		t.Errorf("the log says %q", got)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "slots", "a")); !os.IsNotExist(err) {
		t.Errorf("a leftover is still there: %v", err)
	}
}
