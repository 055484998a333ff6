package core

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestHomeWhy: jobs that only their own broker knows.
func TestHomeWhy(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	a.lease(-time.Hour)
	r.now = r.now.Add(time.Hour)
	a.turn(TickEvent{})
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	w, ok := a.core.own.Why(3)
	if !ok || w.Waiting != 1 || !strings.Contains(w.Summary, "behind 1 task") || w.Estimate.Unknown == "" {
		t.Fatalf("%+v", w)
	}
	if _, ok = a.core.own.Why(99); ok {
		t.Fatal("no such job")
	}
}
