package node

import "testing"

// Found by use: a job with 6 of 60 tasks done and none running was just "queued".
func TestProgressSaysWhatWasDone(t *testing.T) {
	for want, counts := range map[string]map[string]uint32{
		"6/60 done, waiting":                    {"succeeded": 6, "queued": 54},
		"6/60 done (1 failed, 2 lost), waiting": {"succeeded": 3, "failed": 1, "lost": 2, "queued": 54},
		"6/60 done, 5 running":                  {"succeeded": 6, "queued": 49, "running": 3, "assigned": 1, "stopping": 1},
		"1/3 done (1 cancelled), withdrawn":     {"cancelled": 1, "withdrawn": 2},
	} {
		if got := (&Job{Counts: counts}).Progress(); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
	for _, counts := range []map[string]uint32{nil, {"queued": 3}, {"running": 1, "queued": 2}, {"succeeded": 2, "failed": 1}} {
		if got := (&Job{Counts: counts}).Progress(); got != "" {
			t.Errorf("%v: %q", counts, got)
		}
	}
}
