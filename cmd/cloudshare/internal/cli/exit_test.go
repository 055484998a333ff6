package cli

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// Found by use: a bad value that the broker found exited 5, as if it were the
// federation that stood in the way; one that the command found itself, 2.
func TestBadValuesAreUsageWhoeverFindsThem(t *testing.T) {
	for name, want := range map[string]int{
		"malformed": ExitUsage, "invalid-job": ExitUsage, "invalid-policy": ExitUsage, "invalid-request": ExitUsage, "invalid-parameter": ExitUsage, "bad-cursor": ExitUsage,
		"unfit": ExitRefused, "key-reused": ExitRefused, "quota": ExitRefused, "no-quorum": ExitRefused, "owner-unreachable": ExitUnreachable,
	} {
		p := &client.Problem{Type: wire.ProblemPrefix + name, Status: 422}
		if code := CodeOf(p); code != want {
			t.Errorf("%s: exit %d, want %d", name, code, want)
		}
	}
}
