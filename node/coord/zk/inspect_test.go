//go:build zookeeper

package zk

import (
	"slices"
	"strings"
	"testing"
)

// TestInspect: a sound tree has no faults, and each damage is named by its path.
func TestInspect(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {})
	c.Compact(t)
	talk(t, all, func() {})
	r, err := Inspect(patience(t), c.place, 3, testLogger())
	if err != nil || len(r.Faults) > 0 {
		t.Fatalf("a sound tree: %v, %v", r, err)
	}
	lead := c.leader(t)
	if r.Lead.Site != lead.cfg.Site || !r.Lead.Held || r.Snapshot.Entry == 0 || r.Snapshot.Chunks == 0 || len(r.Entries) != 3 {
		t.Errorf("%+v", r)
	}
	for _, m := range r.Members {
		if !m.Voter || !m.Connected {
			t.Errorf("%+v", m)
		}
	}
	p, _, err := lead.pointer(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range c.logs {
		_ = l.Close() // the damage is for Inspect alone
	}
	conn, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	overwrite(t, conn, p.chunk(0), []byte("x"))
	overwrite(t, conn, logPath(r.Log.Last), []byte("x"))
	if _, err := conn.write(t.Context(), conn.remove(logPath(r.Log.Last-1))); err != nil {
		t.Fatal(err)
	}
	if r, err = Inspect(patience(t), c.place, 3, testLogger()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.chunk(0), logPath(r.Log.Last), logPath(r.Log.Last - 1)} {
		if !slices.ContainsFunc(r.Faults, func(f string) bool { return strings.Contains(f, c.place.Chroot+path) }) {
			t.Errorf("%s is not among %q", path, r.Faults)
		}
	}
	if r.Lead.Held {
		t.Error("a closed lead's session lives")
	}
}
