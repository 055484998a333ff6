package replica

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// What nobody can read counts as an entry that holds nothing, once there is a federation; a broker that begins with it
// has the log of another version.
func TestUnreadableEntries(t *testing.T) {
	genesis := command.AppendBatch(nil, 1, 0, [][]byte{command.Append(nil, command.Command{
		ID: command.ID{Site: "a"}, Body: &command.Genesis{Federation: [16]byte{7}, Params: command.DefaultParams()},
	})}, nil)
	newer, older := []byte{command.Format + 1, 1, 0, 0}, []byte{command.Format - 1, 1, 0, 0}
	for name, entry := range map[string][]byte{
		"garbage": []byte("undecodable"), "nothing": nil, "a newer format": newer, "an older format": older,
		"more commands than there are": {command.Format, 1, 0, 9},
	} {
		one, other := NewReplica(), NewReplica()
		if _, err := one.Apply(entry); err == nil || one.Index() != 0 {
			t.Errorf("%s before the federation: entry %d, %v", name, one.Index(), err)
		}
		for _, r := range []*Replica{one, other} {
			if _, err := r.Apply(genesis); err != nil {
				t.Fatal(err)
			}
		}
		res, err := one.Apply(entry)
		if err != nil || len(res) != 0 || one.Index() != 2 {
			t.Errorf("%s: entry %d, %v, %v", name, one.Index(), res, err)
		}
		if _, err := other.Apply(command.AppendBatch(nil, 0, 0, nil, nil)); err != nil {
			t.Fatal(err)
		}
		if one.state.Hash() != other.state.Hash() {
			t.Errorf("%s changed more than an empty entry", name)
		}
	}
	if _, err := NewReplica().Apply(older); !errors.Is(err, command.ErrVersion) {
		t.Errorf("the log of an older version: %v", err)
	}
}
