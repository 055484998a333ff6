package fsm

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if underRace {
		if err := flag.Set("rapid.checks", "25"); err != nil { // -rapid.checks says otherwise
			panic(err)
		}
	}
	os.Exit(m.Run())
}
