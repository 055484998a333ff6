package quotas

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

// TestWhoseLimitsHold: a command outweighs the configuration until it is cleared, what is said of one user outweighs
// what is said of all, and a start finds the same.
func TestWhoseLimitsHold(t *testing.T) {
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	start := func() *Book {
		b := NewBook()
		b.Configure(map[string]node.UserLimits{node.EveryUser: {Tasks: 10}, "alice": {Tasks: 20}})
		b.Accept(1, "bob", Claim{Tasks: 1}, 0, 0)
		if err = b.Recover(j); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	b := start()
	for _, c := range []struct {
		set    string
		change node.UserLimitsChange
		want   string // limit and origin, of *, alice and bob
	}{
		{"", node.UserLimitsChange{}, "10 configuration, 20 configuration, 10 everybody"},
		{node.EveryUser, node.UserLimitsChange{Tasks: u64(30)}, "30 command, 20 configuration, 30 everybody"},
		{"alice", node.UserLimitsChange{Bytes: u64(1)}, "30 command, 20 command, 30 everybody"},
		{"alice", node.UserLimitsChange{Tasks: u64(40)}, "30 command, 40 command, 30 everybody"},
		{"bob", node.UserLimitsChange{Tasks: u64(0)}, "30 command, 40 command, 0 command"},
		{"bob", node.UserLimitsChange{Clear: true}, "30 command, 40 command, 30 everybody"},
		{"alice", node.UserLimitsChange{Clear: true}, "30 command, 20 configuration, 30 everybody"},
		{node.EveryUser, node.UserLimitsChange{Tasks: u64(0)}, "0 command, 20 configuration, 0 everybody"},
		{node.EveryUser, node.UserLimitsChange{Clear: true}, "10 configuration, 20 configuration, 10 everybody"},
	} {
		if c.set != "" {
			if err = b.Set(c.set, &c.change); err != nil {
				t.Fatal(err)
			}
			var writes []record.Write
			b.WriteUser(c.set, &writes)
			if err = j.Commit(writes); err != nil {
				t.Fatal(err)
			}
		}
		for when, b := range map[string]*Book{"now": b, "after a start": start()} {
			b.tidy()
			got := ""
			for i, u := range b.List(0) {
				got += fmt.Sprintf("%s%d %s", []string{"", ", ", ", "}[i], u.Limits.Tasks, u.From)
			}
			if got != c.want {
				t.Errorf("%s %+v, %s: %s, want %s", c.set, c.change, when, got, c.want)
			}
		}
		own := b.users["alice"].limits
		if err = b.Admit("alice", Claim{Tasks: 21}, 0); (err == nil) != (own != nil && own.Tasks == 40) {
			t.Errorf("%s %+v: alice's 21 tasks: %v", c.set, c.change, err)
		}
	}
	if none := NewBook(); none.List(0)[0].From != node.LimitsOfNobody {
		t.Errorf("without any: %+v", none.List(0))
	}
}
