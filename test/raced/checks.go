package raced

import "flag"

// FewerChecks has rapid play so many cases of each property under the race detector, for a
// TestMain; -rapid.checks, which is read later, says otherwise.
func FewerChecks(n string) {
	if !Enabled {
		return
	}
	if err := flag.Set("rapid.checks", n); err != nil {
		panic(err)
	}
}
