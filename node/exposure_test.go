package node

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// max(0, ⌊(1−θ)·capacity⌋ − home use − reserve), machine by machine.
func TestExposure(t *testing.T) {
	e := Exposure{ReserveCores: 2, SharedThreshold: 30}
	for _, test := range []struct {
		name     string
		shared   bool
		home     int64
		reserve  int64
		want     int64
		left     int64
		mayFill  int64
		capacity int64
	}{
		{"own machine", false, 0, 0, 8000, 0, 8000, 8000},
		{"home use", false, 3000, 0, 5000, 0, 8000, 8000},
		{"more home use than there is", false, 9000, 0, 0, 0, 8000, 8000},
		{"reserve", false, 1000, 2000, 5000, 0, 8000, 8000},
		{"reserve beyond the machine", false, 0, 2000, 0, 1000, 1000, 1000},
		{"shared with others", true, 0, 0, 5600, 0, 5600, 8000},
		{"shared, rounded down", true, 0, 0, 2, 0, 2, 3},
	} {
		m := executor.Machine{Resources: executor.Resources{MilliCPU: test.capacity}, Shared: test.shared}
		got, left := e.Exposed(m, command.Resources{MilliCPU: test.home}, test.reserve)
		if got.MilliCPU != test.want || left != test.left || e.Open(m).MilliCPU != test.mayFill {
			t.Errorf("%s: exposed %d, reserve left %d, may fill %d", test.name, got.MilliCPU, left, e.Open(m).MilliCPU)
		}
	}
}
