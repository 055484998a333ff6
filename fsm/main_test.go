package fsm

import (
	"os"
	"testing"

	"github.com/cloudshare/cloudshare/test/raced"
)

func TestMain(m *testing.M) {
	raced.FewerChecks("25") // a State is one goroutine's but for its snapshots
	os.Exit(m.Run())
}
