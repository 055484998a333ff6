package cli

import (
	"net/http"
	"strings"
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

// Whoever has no token, or one that does not suffice, is refused in one line that says what to do.
func TestRefusedForWantOfAToken(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		err := &client.Problem{
			Type: wire.ProblemPrefix + "unauthenticated", Title: "A token is needed", Status: status, Detail: "say --token-file",
		}
		code, text := CodeOf(err), Explain(err)
		if code != ExitRefused || !strings.Contains(text, "--token-file") || strings.Contains(text, "\n") {
			t.Errorf("exit %d: %s", code, text)
		}
	}
}
