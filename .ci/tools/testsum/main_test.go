package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain lets a test run this binary as a stand-in for `go test -json`.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv("TESTSUM_SAY"); ok && len(os.Args) > 1 && os.Args[1] == "say" {
		os.Stdout.WriteString(text)
		if strings.Contains(text, `"fail"`) {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func summarize(t *testing.T, events string) (code int, out string) {
	t.Helper()
	t.Setenv("TESTSUM_SAY", events)
	var b strings.Builder
	code = run([]command{{args: []string{os.Args[0], "say"}}}, &b)
	return code, b.String()
}

func TestPassingRunEndsInACount(t *testing.T) {
	code, out := summarize(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1.5}
`)
	if code != 0 || !strings.Contains(out, "1 passed, 0 failed, 1 skipped") || strings.Contains(out, "noise") {
		t.Fatalf("code %d, output:\n%s", code, out)
	}
}

func TestFailureShowsItsOutputAndFails(t *testing.T) {
	code, out := summarize(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"a.go:7: want 1\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`)
	if code != 1 || !strings.Contains(out, "a.go:7: want 1") || !strings.Contains(out, "0 passed, 1 failed") {
		t.Fatalf("code %d, output:\n%s", code, out)
	}
}

// TestFirstWordsComeAgain at the end, where they are seen though much follows them.
func TestFirstWordsComeAgain(t *testing.T) {
	_, out := summarize(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    log.go:1: a log\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: want 1\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    b_test.go:9: many logs\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`)
	if !strings.Contains(out, "failed: p TestA: a_test.go:7: want 1\n") {
		t.Fatalf("output:\n%s", out)
	}
}

func TestPanicCountsTheTestUnderWay(t *testing.T) {
	code, out := summarize(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`)
	if code != 1 || !strings.Contains(out, "panic: boom") || !strings.Contains(out, "TestA (did not end)") {
		t.Fatalf("code %d, output:\n%s", code, out)
	}
}

func TestNothingRanFails(t *testing.T) {
	if code, out := summarize(t, `{"Action":"skip","Package":"p"}`+"\n"); code != 1 {
		t.Fatalf("a run without tests passed:\n%s", out)
	}
}

func TestSplit(t *testing.T) {
	got := split([]string{"--", "go", "test", "--", "true"})
	if len(got) != 2 || got[0].args[1] != "test" || got[1].args[0] != "true" {
		t.Fatalf("split: %v", got)
	}
	for _, bad := range [][]string{nil, {"go"}, {"--"}, {"--", "--", "x"}} {
		if split(bad) != nil {
			t.Errorf("split(%q) was accepted", bad)
		}
	}
}
