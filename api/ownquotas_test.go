package api

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// The page of oneself tells what one has open, may have, and how much of it is held; nobody else's is there.
func TestOwnQuotas(t *testing.T) {
	u := newUsers(t)
	u.fake.limits, u.fake.held = node.UserLimits{Tasks: 1000, MilliCPU: 2500, Shares: 4}, 2
	for who, parts := range map[string][]string{
		"alice": {
			"<dt>Tasks held</dt><dd>2</dd>", "<dt>Shares</dt><dd>4</dd>", "2.00 core-hours count", "those of all users",
			`data-l="Used">3</td><td class="n" data-l="At most">1,000</td>`, "2 of 3 tasks are held at site-1",
			`data-l="Used">3</td><td class="n" data-l="At most">2.5</td>`, `data-l="At most">any</td>`,
		},
		"bob": {"<dt>Tasks held</dt><dd>0</dd>", "None of your tasks is held", "0.00 core-hours count", "!2 of 3 tasks"},
		"":    {"No user", "!my-quotas", "!Shares"},
	} {
		page := u.browse("GET", "/me", "", u.session(who, access.ReadOnly)).Body.String()
		for _, part := range parts {
			text, absent := strings.CutPrefix(part, "!")
			if strings.Contains(page, text) == absent {
				t.Errorf("%q: %q is there: %v, in %s", who, text, absent, page)
			}
		}
	}
}
