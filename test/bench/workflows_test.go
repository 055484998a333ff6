package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestWorkflowStepsKeepTheirTime: the section is bounded by its steps, and takes three minutes at most.
func TestWorkflowStepsKeepTheirTime(t *testing.T) {
	sum := time.Duration(0)
	for _, step := range workflowSteps {
		if step.limit <= 0 {
			t.Errorf("%s has no stop", step.name)
		}
		sum += step.limit
	}
	if sum > 3*time.Minute {
		t.Errorf("all steps take %s", sum)
	}
}

// TestGather: each job is waited for once, by one that waits for no more than it may.
func TestGather(t *testing.T) {
	for _, n := range []int{1, mostAfter, mostAfter + 1, 10_000} {
		layer := make([]string, n)
		for i := range layer {
			layer[i] = string(rune('a' + i))
		}
		var got []string
		for _, list := range gather(layer) {
			if len(list) == 0 || len(list) > mostAfter {
				t.Errorf("of %d one waits for %d", n, len(list))
			}
			for _, a := range list {
				got = append(got, a.Job)
			}
		}
		if strings.Join(got, " ") != strings.Join(layer, " ") {
			t.Errorf("of %d are waited for %d", n, len(got))
		}
	}
}

// TestGraphLines: each job waits for the two before it, over the border of requests, too.
func TestGraphLines(t *testing.T) {
	after := func(before ...string) (text string) {
		for line := range bytes.Lines(graphLines(before, 3)) {
			var spec testbed.Spec
			if err := json.Unmarshal(line, &spec); err != nil {
				t.Fatal(err)
			}
			for _, a := range spec.After {
				text += a.Job + " "
			}
			text += "| "
		}
		return text
	}
	if got, want := after("a.1"), "a.1 | #1 a.1 | #2 #1 | "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := after("a.8", "a.9"), "a.9 a.8 | #1 a.9 | #2 #1 | "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseHeap(t *testing.T) {
	if got, err := parseHeap("heap profile\n\n# runtime.MemStats\n# Alloc = 5\n# HeapAlloc = 3145728\n"); err != nil || got != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "# HeapAlloc = many\n"} {
		if _, err := parseHeap(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
