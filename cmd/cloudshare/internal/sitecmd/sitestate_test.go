package sitecmd

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Found by use: a draining site was just alive.
func TestSiteStatesSayMore(t *testing.T) {
	for want, s := range map[string]wire.Site{"alive": {State: "alive"}, "alive, draining": {State: "alive", Closed: "draining"}} {
		if got := siteText(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
