package fsm

import (
	"flag"
	"os"
	"testing"

	"github.com/cloudshare/cloudshare/test/raced"
)

func TestMain(m *testing.M) {
	// A State is one goroutine's but for its snapshots.
	if raced.Enabled {
		if err := flag.Set("rapid.checks", "25"); err != nil { // -rapid.checks says otherwise
			panic(err)
		}
	}
	os.Exit(m.Run())
}
