package store

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnsyncedCacheIsConfirmed: found by a run of chaos. A disk lost what was not synced while its machine stood, and
// tasks were given files of the right size that were all zeros.
func TestUnsyncedCacheIsConfirmed(t *testing.T) {
	r := testRig(t)
	r.boot = "same"
	r.reopen()
	r.put(cached, "torn")
	r.put(cached, "whole")
	r.reopen()
	torn, whole := ref(cached, "torn").Hash, ref(cached, "whole").Hash
	if err := os.WriteFile(filepath.Join(r.dir, fileOf(ref(cached, "torn"))), make([]byte, len("torn")), 0o600); err != nil {
		t.Fatal(err)
	}
	if missing := r.Missing(cached, torn, whole); len(missing) != 0 {
		t.Fatalf("%d are missing before anybody looks", len(missing))
	}
	if err := r.Confirm(t.Context(), cached, torn, whole, ref(cached, "never there").Hash); err != nil {
		t.Fatal(err)
	}
	if missing := r.Missing(cached, torn, whole); len(missing) != 1 || missing[0] != torn {
		t.Fatalf("missing is %v, want the torn one", missing)
	}
	if r.isUnsure(ref(cached, "whole")) {
		t.Error("what was found whole is looked at again")
	}
	r.put(cached, "torn")
	r.want(cached, "torn")
	if r.isUnsure(ref(cached, "torn")) {
		t.Error("what was put again is looked at")
	}
}
