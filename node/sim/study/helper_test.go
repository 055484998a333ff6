package study

import (
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/swf"
)

func openSample(t *testing.T) *sim.Workload {
	t.Helper()
	w, err := sim.OpenWorkload(t.Context(), "../testdata/sample.swf", func(p swf.Problem) { t.Error(p) })
	if err != nil {
		t.Fatal(err)
	}
	return w
}
