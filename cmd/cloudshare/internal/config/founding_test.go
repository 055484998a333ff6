package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoinIsNotOver: data without a first configuration may join through other
// peers, and go on without any; they found nothing. Other data take no --join.
func TestJoinIsNotOver(t *testing.T) {
	dir := t.TempDir()
	member := filepath.Join(dir, RaftDir, "member.json")
	if err := os.MkdirAll(filepath.Dir(member), 0o700); err != nil {
		t.Fatal(err)
	}
	const invited = "@invitation"
	for _, tc := range []struct {
		name, member    string
		bootstrap, join bool
		refused         string
	}{
		{"joins through others", `{"site":"b","follow":["127.0.0.1:1"]}`, false, true, ""},
		{"goes on", `{"site":"b","follow":["127.0.0.1:1"]}`, false, false, ""},
		{"founds nothing", `{"site":"b","follow":["127.0.0.1:1"]}`, true, false, "belong to a federation already"},
		{"is a member", `{"site":"b"}`, false, true, "belong to a federation already"},
	} {
		if err := os.WriteFile(member, []byte(tc.member), 0o600); err != nil {
			t.Fatal(err)
		}
		c := Default()
		c.Site, c.DataDir, c.Bootstrap = "b", dir, tc.bootstrap
		if tc.join {
			c.Join = invited
		}
		err := c.CheckFounding()
		if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got, err := c.Settled(); err != nil || tc.refused == "" && got.Join != c.Join {
			t.Errorf("%s: it asks %v, %v", tc.name, got.Join, err)
		}
	}
}
