package explain

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// A site that offers nothing says why, if it knows; others know what its offer says.
func TestClosedSiteSaysWhy(t *testing.T) {
	x := &fsm.SiteWhy{Site: "a", Why: fsm.HinderedClosed}
	for want, h := range map[string]SiteReports{
		"offers no machine now, and its broker does not say why": {},
		"offers no machine now: it leaves the federation":        {Closed: map[string]command.Closure{"a": command.ClosedLeaving}},
		"offers no machine now: none of its machines can start tasks": {
			Closed: map[string]command.Closure{"a": command.ClosedTrouble},
			Bare:   map[string]bool{"a": true},
		},
		"has no machine now: what runs its tasks is away":                                       {Bare: map[string]bool{"a": true}},
		"offers no machine now: its operator drains it":                                         {Own: OwnTrouble{Site: "a", Closed: "its operator drains it"}},
		"offers no machine now: container has no machine now: no containers: the engine is off": {Own: OwnTrouble{Site: "a", Away: "container has no machine now: no containers: the engine is off"}},
	} {
		if got := h.text(&fsm.WhyView{}, x); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	kind := &fsm.SiteWhy{Site: "a", Why: fsm.HinderedKind}
	h := SiteReports{Own: OwnTrouble{Site: "a", Away: "container has no machine now: off"}}
	if got := h.text(&fsm.WhyView{}, kind); !strings.HasSuffix(got, "; container has no machine now: off") {
		t.Error(got)
	}
}
