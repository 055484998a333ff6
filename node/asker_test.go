package node

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

func TestWhoSeesWhat(t *testing.T) {
	here, there := command.JobID{Site: "here", Num: 1}, command.JobID{Site: "there", Num: 1}
	for name, c := range map[string]struct {
		asker Asker
		job   command.JobID
		user  string
		want  Sight
	}{
		"a user's own":               {Asker{User: "alice", Token: "t"}, here, "alice", SeesAll},
		"another user's":             {Asker{User: "alice", Token: "t"}, here, "bob", SeesNothing},
		"the site's own, by a user":  {Asker{User: "alice", Token: "t"}, here, "", SeesNothing},
		"the site's own, by no user": {Asker{Token: "t"}, here, "", SeesAll},
		"a user's, by no user":       {Asker{Token: "t"}, here, "alice", SeesNothing},
		"a user's, by the operator":  {Asker{Operator: true}, here, "alice", SeesAll},
		"another site's":             {Asker{User: "alice", Token: "t"}, there, "", SeesOutline},
		"another site's, operator":   {Asker{Operator: true}, there, "", SeesOutline},
		"by its site's broker":       {Asker{Site: "there"}, there, "", SeesAll},
		"by another site's broker":   {Asker{Site: "third"}, there, "", SeesOutline},
		"this site's, by a broker":   {Asker{Site: "there"}, here, "", SeesOutline},
		"by nobody":                  {Asker{}, here, "", SeesNothing},
		"another site's, by nobody":  {Asker{}, there, "", SeesNothing},
	} {
		if got := c.asker.Sees(c.job, "here", c.user); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
