package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// historiesAgree has `cloudshare audit verify` go through what each broker keeps of the log, while it runs.
func historiesAgree(t *testing.T, fed *testbed.Federation) {
	t.Helper()
	for _, s := range fed.Sites {
		dir := filepath.Join(s.Dir, "data")
		out, err := exec.CommandContext(within(t), cloudshare, "audit", "verify", dir, "-o", "json").Output()
		var r struct {
			Verdict                    string
			Entries, Bundles, Unsigned uint64
			Begin                      struct{ Entry uint64 }
			Gaps                       []any
		}
		cause := json.Unmarshal(out, &r)
		// A federation of less than 40 s of log time has not signed anything: that is not proven (exit code 7).
		if code := new(exec.ExitError); errors.As(err, &code) && code.ExitCode() == 7 && r.Verdict == "not-proven" {
			err = nil
		}
		whole := r.Begin.Entry == 0 && len(r.Gaps) == 0 || *coordination != "raft" // whose log begins with a snapshot
		if err != nil || cause != nil || !whole || r.Entries == 0 || r.Bundles == 0 || r.Unsigned > 0 {
			t.Errorf("what %s keeps of the log: %v\n%s", s.Name, err, out)
		}
	}
}
