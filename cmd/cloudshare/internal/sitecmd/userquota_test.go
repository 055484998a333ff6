package sitecmd

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// What the broker warns of is a note: data are as ever.
func TestQuotaOfNobodyIsTold(t *testing.T) {
	code, out, errs := runCLI(t, "", "quota", "set", "alcie", "--tasks", "5", "--addr", clitest.Broker(t))
	if code != 0 || !strings.Contains(out, "alcie") || strings.Contains(out, "yet") || !strings.Contains(errs, "no token has the user alcie yet") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
