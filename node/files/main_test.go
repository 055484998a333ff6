package files

import (
	"os"
	"testing"

	"github.com/cloudshare/cloudshare/test/raced"
)

func TestMain(m *testing.M) {
	raced.FewerChecks("25")
	os.Exit(m.Run())
}
