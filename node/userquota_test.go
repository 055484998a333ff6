package node

import "testing"

func TestWhoseLimitsMayBeSet(t *testing.T) {
	for name, ok := range map[string]bool{"alice": true, EveryUser: true, "": false, "**": false, "Alice": false, ".a": false} {
		if err := CheckLimitsUser(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
