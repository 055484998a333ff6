package trouble

import (
	"strings"
	"testing"
)

// Only the machine in trouble rests; one that was begun before its rest and starts
// during it is no sign of health.
func TestOnlyTheMachineInTroubleRests(t *testing.T) {
	x := NewTroubles()
	x.Begin("node-1", "kube", "no space", 100)
	if !x.Rests("node-1", 101) || x.Rests("node-2", 101) {
		t.Error("the wrong machine rests")
	}
	x.End("node-1", 99)
	if !x.Rests("node-1", 101) {
		t.Error("an older start ended the rest")
	}
	x.Begin("node-1", "kube", "no space at all", 102)
	if got := x.by["node-1"]; got.pause != MinRest || got.why != "no space at all" {
		t.Errorf("declined during its rest: %+v", got)
	}
	x.Begin("local", "local", "no processes", 102)
	if x.Of("kube", 102) == "" || strings.Contains(x.Of("kube", 102), "local") || x.Count()["kube"] != 1 {
		t.Errorf("of the handler: %q", x.Of("kube", 102))
	}
	x.Keep(func(machine string) bool { return machine == "local" })
	if x.Rests("node-1", 103) || !x.Rests("local", 103) {
		t.Error("a machine that is gone is remembered, or one that is not is forgotten")
	}
	x.End("local", 102+int64(MinRest))
	if x.Rests("local", 103) {
		t.Error("it rests after a start")
	}
}
