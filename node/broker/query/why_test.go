package query

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
)

// TestHeldTasksHideNoDelivery: that tasks are held does not hide that outputs of others are on their way.
func TestHeldTasksHideNoDelivery(t *testing.T) {
	v := &fsm.WhyView{Held: 2, Delivering: 1, DeliveringWhy: "outputs of 1 task are on their way"}
	if got := heldSummary("tasks held: 2", v); got != "tasks held: 2; outputs of 1 task are on their way" {
		t.Error(got)
	}
	v.Delivering, v.DeliveringWhy = 0, ""
	if got := heldSummary("tasks held: 2", v); got != "tasks held: 2" {
		t.Error(got)
	}
}
