package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const failedOnce = `{"Action":"fail","Package":"p","Test":"TestA/sub"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`

// system runs a stand-in for a system test that says events, and returns what has to run again.
func system(t *testing.T, events string) (code int, out string, left []string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(againEnv, dir)
	t.Setenv("TESTSUM_SAY", events)
	var b strings.Builder
	code = run([]command{{args: []string{os.Args[0], "say"}, system: true}}, &b)
	left, _ = filepath.Glob(filepath.Join(dir, "*.json"))
	return code, b.String(), left
}

func TestFailedSystemTestRunsAgain(t *testing.T) {
	code, out, left := system(t, failedOnce)
	if code != 0 || len(left) != 1 || !strings.Contains(out, "TO RUN AGAIN ALONE: TestA\n") {
		t.Fatalf("code %d, %d left, output:\n%s", code, len(left), out)
	}
	var b strings.Builder // its environment says the same: it fails again
	if code := runAgain(filepath.Dir(left[0]), &b); code != 1 || !strings.Contains(b.String(), "FAILED TWICE") {
		t.Errorf("code %d, output:\n%s", code, b.String())
	}
	text, err := os.ReadFile(left[0])
	if err != nil {
		t.Fatal(err)
	}
	passes := strings.ReplaceAll(string(text), `\"fail\"`, `\"pass\"`)
	if err := os.WriteFile(left[0], []byte(passes), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	code = runAgain(filepath.Dir(left[0]), &b)
	if code != 0 || !strings.Contains(b.String(), "FLAKY: failed beside other work, passed alone: TestA") {
		t.Errorf("code %d, output:\n%s", code, b.String())
	}
}

func TestGraveFailuresGetNoSecondRun(t *testing.T) {
	for name, events := range map[string]string{
		"race":        `{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}` + "\n" + failedOnce,
		"panic":       `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}` + "\n" + failedOnce,
		"no test":     `{"Action":"fail","Package":"p"}` + "\n",
		"did not end": `{"Action":"output","Package":"p","Test":"TestC","Output":"x\n"}` + "\n" + failedOnce,
		"too many": strings.Join([]string{failedOnce, strings.ReplaceAll(failedOnce, "TestA", "TestC"),
			strings.ReplaceAll(failedOnce, "TestA", "TestD"), strings.ReplaceAll(failedOnce, "TestA", "TestE")}, ""),
	} {
		if code, out, left := system(t, events); code != 1 || len(left) != 0 {
			t.Errorf("%s: code %d, %d left, output:\n%s", name, code, len(left), out)
		}
	}
}

func TestNarrowed(t *testing.T) {
	args := strings.Fields("go test -json -run Many ./test/e2e ./x -coordination zookeeper")
	got := narrowed(args, []string{"TestA"}, []string{"m/test/e2e"})
	want := strings.Fields("go test -json -run ^(TestA)$ m/test/e2e -coordination zookeeper")
	if !slices.Equal(got, want) {
		t.Errorf("narrowed to %q, want %q", got, want)
	}
}
