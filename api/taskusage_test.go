package api

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestTasksSayWhatTheyUsed: a task's answer has what its attempt has used, with bytes in and out, and nothing of one of
// which nothing is known.
func TestTasksSayWhatTheyUsed(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"],"count":3}`)
	f.tasks = map[uint32]node.Task{
		0: {State: "succeeded", Measured: command.Measured{
			PeakBytes: 5 << 20, UserMs: 1200, SystemMs: 34, InBytes: 1 << 40, OutBytes: 7,
			Source: command.MeasuredCgroup,
		}},
		1: {State: "succeeded", Measured: command.Measured{InBytes: 3}},
	}
	w := ask(s, "GET", "/v1/jobs/site-1.1/tasks", "", "").Body.String()
	for _, want := range []string{
		`"usage":{"peak_memory_bytes":5242880,"cpu_user_ms":1200,"cpu_system_ms":34,"in_bytes":1099511627776,` +
			`"out_bytes":7,"measured_by":"cgroup"}`,
		`"usage":{"in_bytes":3,"measured_by":"unknown"}`,
	} {
		if !strings.Contains(w, want) {
			t.Errorf("no %s in %s", want, w)
		}
	}
	if n := strings.Count(w, `"usage"`); n != 2 {
		t.Errorf("%d of 3 tasks say something: %s", n, w)
	}
}

// TestUsageThatAnotherBrokerTells: it is read as it was told, and what nobody can have used is cut.
func TestUsageThatAnotherBrokerTells(t *testing.T) {
	for _, m := range []command.Measured{
		{},
		{OutBytes: 9},
		{PeakBytes: 1, UserMs: 2, SystemMs: 3, InBytes: 4, OutBytes: 5, Source: command.MeasuredRusage},
	} {
		if got := measuredOf(form.AttemptUsage(&m)); got != m {
			t.Errorf("%+v is read as %+v", m, got)
		}
	}
	got := measuredOf(&wire.AttemptUsage{
		PeakBytes: 1 << 62, UserMs: -1, SystemMs: 1 << 62, InBytes: 1 << 62, OutBytes: -5, Source: "<b>me</b>",
	})
	want := command.Measured{
		PeakBytes: command.MaxPeakBytes, SystemMs: command.MaxProcessorMs, InBytes: command.MaxTransfer,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
