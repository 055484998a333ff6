package e2e

import (
	"encoding/json"
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
			Entries, Bundles, Unsigned uint64
			Begin                      struct{ Entry uint64 }
			Gaps                       []any
		}
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		whole := r.Begin.Entry == 0 && len(r.Gaps) == 0 || *coordination != "raft" // whose log begins with a snapshot
		if err != nil || !whole || r.Entries == 0 || r.Bundles == 0 || r.Unsigned > 0 {
			t.Errorf("what %s keeps of the log: %v\n%s", s.Name, err, out)
		}
	}
}
