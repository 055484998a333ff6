package core

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/test/raced"
)

func TestMain(m *testing.M) {
	raced.FewerChecks("25")
	goleak.VerifyTestMain(m)
}
