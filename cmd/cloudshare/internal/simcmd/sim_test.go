package simcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim/study"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

const sampleLog = "../../../../node/sim/testdata/sample.swf"

func TestSimRunWritesWhatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	starts, schedule, gantt := filepath.Join(dir, "s.csv"), filepath.Join(dir, "s.swf"), filepath.Join(dir, "s.svg")
	code, out, errs := runCLI(t, "", "sim", "run", "--load", "1.5", "--starts", starts, "--schedule", schedule, "--gantt", gantt, sampleLog)
	if code != cli.ExitOK || strings.Count(out, "\n") != 6 {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	picture := filepath.Join(dir, "s.png")
	if code, _, errs := runCLI(t, "", "sim", "run", "--gantt", picture, sampleLog); code != cli.ExitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for path, begin := range map[string]string{starts: "start,end,site", schedule: "; Version: 2.2", gantt: "<svg", picture: "\x89PNG"} {
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), begin) {
			t.Errorf("%s: %.40q, %v", path, text, err)
		}
	}
	// The schedule is a log itself.
	if code, _, errs := runCLI(t, "", "sim", "run", "--sites", "1", "--unit", "0", "--cores", "50", "--period", "0", schedule); code != cli.ExitOK {
		t.Errorf("the schedule cannot be played: %s", errs)
	}
	// Without a length the period goes from --from to the end.
	for from, want := range map[string]int{"-1": 0, "0": 0, "200000": 200000} {
		code, _, errs := runCLI(t, "", "sim", "run", "--from", from, "--period", "0", "--gantt", gantt, sampleLog)
		text, err := os.ReadFile(gantt)
		if code != cli.ExitOK || err != nil || !strings.Contains(string(text), fmt.Sprintf("from second %d:", want)) {
			t.Errorf("--from %s --period 0: exit %d, %s%.200s", from, code, errs, text)
		}
	}
	if code, out, errs := runCLI(t, "", "sim", "run", "-o", "json", "--unit", "0", "--cores", "5", sampleLog); code != cli.ExitOK || !strings.Contains(errs, "wider than every site") {
		t.Errorf("jobs wider than every site: exit %d, %s%s", code, out, errs)
	}
}

// Ranges are told over logs and seeds, in a report, too; what was played stays.
func TestSimRanges(t *testing.T) {
	dir := t.TempDir()
	line := []string{"sim", "ranges", "--seeds", "2", "--periods", "1", "--loads", "1.5", "--scenarios", "1", "--beyond", "ALONE", "--out", dir, sampleLog}
	for range 2 { // the second time nothing is left to be played
		code, out, errs := runCLI(t, "", line...)
		if code != cli.ExitOK || strings.Count(out, "\n") != 6 || !strings.Contains(out, "SEEDS") {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "ranges.md"))
	if err != nil || !strings.Contains(string(text), "--seeds=2 --periods=1") || !strings.Contains(string(text), "## Scenario 1") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, bad := range [][]string{{"--seeds", "0"}, {"--beyond", ""}, {"--workers", "-1"}, {"--period", "1ms"}, {"--tasks", "-1"}} {
		if code, _, errs := runCLI(t, "", append([]string{"sim", "ranges", "--out", dir, sampleLog}, bad...)...); code != cli.ExitUsage {
			t.Errorf("%s: exit %d, %s", bad, code, errs)
		}
	}
}

// Estimates are judged by seed, and together; programs get the same.
func TestSimEstimates(t *testing.T) {
	line := []string{"sim", "estimates", "--seeds", "2", "--loads", "1.5", "--period", "24h", sampleLog}
	code, out, errs := runCLI(t, "", line...)
	if code != cli.ExitOK || strings.Count(out, "\n") != 1+2*3 || !strings.Contains(out, "WITHIN P90") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	code, out, errs = runCLI(t, "", append(line, "-o", "json")...)
	var rows []estimateRow
	if err := json.Unmarshal([]byte(out), &rows); code != cli.ExitOK || err != nil || len(rows) != 6 {
		t.Fatalf("exit %d, %v, %d rows, %s", code, err, len(rows), errs)
	}
	if all := rows[0]; all.Log != "all" || all.Asked == 0 || all.Asked != rows[1].Asked+rows[2].Asked ||
		all.Told != rows[1].Told+rows[2].Told {
		t.Errorf("%+v", rows[:3])
	}
	for _, bad := range [][]string{{"--seeds", "0"}, {"--policies", "BEST"}, {"--workers", "-1"}, {"--period", "1ms"}} {
		if code, _, errs := runCLI(t, "", append([]string{"sim", "estimates", sampleLog}, bad...)...); code != cli.ExitUsage {
			t.Errorf("%s: exit %d, %s", bad, code, errs)
		}
	}
}

// Jobs as they are have a report and verdicts of their own, and no picture of points.
func TestSimTableOfJobsAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := runCLI(t, "", "sim", "table1", "--unit", "0", "--quick", "--out", dir, sampleLog)
	if code != cli.ExitOK || !strings.Contains(out, "SHAPLEY") || !strings.Contains(out, "lengths known") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(text), "## Measured by wait · core-minutes") {
		t.Errorf("%.400s, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "shares.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a picture of points: %v", err)
	}
}

// What a site gains by leading is a table, for programs, too; a run with a hostile leader says what it withheld, and
// one that withholds nothing is that of an honest one if its site is the first anyway.
func TestSimLeader(t *testing.T) {
	line := []string{
		"sim", "leader", "--seeds", "2", "--periods", "1", "--loads", "1.5", "--withhold", "0,10s",
		"--policies", "SIMPL_DIRECT", sampleLog,
	}
	code, out, errs := runCLI(t, "", line...)
	if code != cli.ExitOK || strings.Count(out, "\n") != 1+5 || !strings.Contains(out, "submissions, ends, selective") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	code, out, errs = runCLI(t, "", append(line, "-o", "json")...)
	var rows []study.LeaderGain
	err := json.Unmarshal([]byte(out), &rows)
	if code != cli.ExitOK || err != nil || len(rows) != 5 || rows[1].Seconds != 10 {
		t.Fatalf("exit %d, %v, %s%s", code, err, out, errs)
	}
	_, honest, _ := runCLI(t, "", "sim", "run", "--load", "1.5", sampleLog)
	leading := []string{"sim", "run", "--load", "1.5", "--hostile-leader"}
	code, first, errs := runCLI(t, "", append(leading, "site-01", sampleLog)...)
	if code != cli.ExitOK || first != honest || !strings.Contains(errs, "0 commands were withheld") {
		t.Errorf("exit %d, %s, honest %s%s", code, first, honest, errs)
	}
	code, led, errs := runCLI(t, "", append(leading, "site-02", "--withhold", "60s", "--withhold-ends", sampleLog)...)
	if code != cli.ExitOK || led == honest || strings.Contains(errs, "\n0 commands were withheld") {
		t.Errorf("exit %d, %s%s", code, led, errs)
	}
}

// What a site gains by lying is a table for programs, too, and a report.
func TestSimIncentives(t *testing.T) {
	report := filepath.Join(t.TempDir(), "lies.md")
	code, out, errs := runCLI(t, "", "sim", "incentives", "-o", "json", "--periods", "1", "--loads", "1.5", "--policies", "SIMPL_DIRECT,ALONE",
		"--out", report, sampleLog)
	var table []struct{ Lie, Policy string }
	if err := json.Unmarshal([]byte(out), &table); code != cli.ExitOK || err != nil || len(table) != 20 {
		t.Fatalf("exit %d, %v, %d rows, %s", code, err, len(table), errs)
	}
	text, err := os.ReadFile(report)
	if err != nil || strings.Count(string(text), "| joins after half of the period |") != 2 {
		t.Errorf("%s, %v", text, err)
	}
}

// Every malformed line is listed with its place and what was done; the terminal
// gets the first ones of each log, and the list's name.
func TestSimListsMalformedLines(t *testing.T) {
	dir := t.TempDir()
	good, err := os.ReadFile(sampleLog)
	if err != nil {
		t.Fatal(err)
	}
	bad, list, out := filepath.Join(dir, "bad.swf"), filepath.Join(dir, "deep", "list.txt"), filepath.Join(dir, "out")
	if err := os.WriteFile(bad, append(good, strings.Repeat("one two\n", 1000)...), 0o600); err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprintf("%s:%d: field 1 (job number) is \"one\": not a number: skipped\n", bad, strings.Count(string(good), "\n")+1)
	for path, args := range map[string][]string{
		list:                                {"sim", "run", "--malformed", list, bad},
		filepath.Join(out, "malformed.txt"): {"sim", "table1", "--quick", "--sensitivity", "0", "--sites", "2", "--out", out, bad},
	} {
		code, _, errs := runCLI(t, "", args...)
		text, err := os.ReadFile(path)
		if code != cli.ExitOK || err != nil || strings.Count(string(text), "\n") != 1000 ||
			!strings.HasPrefix(string(text), first) {
			t.Errorf("%v: exit %d, list %.200q, %v", args, code, text, err)
		}
		if strings.Count(errs, "not a number") != maxLogNotes || !strings.Contains(errs, "980 more malformed lines\n") || !strings.Contains(errs, path) {
			t.Errorf("%v told %s", args, errs)
		}
	}
	code, _, errs := runCLI(t, "", "sim", "run", "--malformed", filepath.Join(bad, "list.txt"), bad)
	if code != cli.ExitError || !strings.Contains(errs, "list malformed lines in "+bad) {
		t.Errorf("a list that cannot be written: exit %d, %s", code, errs)
	}
	if code, _, errs := runCLI(t, "", "sim", "run", "--malformed", filepath.Join(dir, "none"), sampleLog); code != cli.ExitOK ||
		strings.Contains(errs, "listed") {
		t.Errorf("a log without malformed lines: exit %d, %s", code, errs)
	}
}

func TestSimTable(t *testing.T) {
	dir := t.TempDir()
	args := []string{"sim", "table1", "--quick", "--period", "6h", "--sites", "3", "--out", dir, sampleLog}
	code, first, errs := runCLI(t, "", args...)
	if code != cli.ExitOK || strings.Count(first, "\n") != 1+3*len(study.PaperPolicies()) {
		t.Fatalf("exit %d, %s%s", code, first, errs)
	}
	for _, name := range []string{"report.md", "instances.csv", "shares.svg", "shares.png", "rows.jsonl"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, again, _ := runCLI(t, "", args...)
	if code != cli.ExitOK || again != first {
		t.Errorf("a second time: exit %d, %s", code, again)
	}
	code, _, errs = runCLI(t, "", append(args, "--seed", "9")...)
	if code != cli.ExitUsage || !strings.Contains(errs, "another study") {
		t.Errorf("another seed in the same folder: exit %d, %s", code, errs)
	}
}

// What is asked for wrongly is exit 2, what cannot be read exit 1, with the
// reason and the remedy in one line.
func TestSimRefusals(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.swf")
	if err := os.WriteFile(empty, []byte("; nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "huge.swf")
	job := "1 0 -1 4000000000 4000000000 -1 -1 -1 -1 -1 1 %d -1 -1 -1 -1 -1 -1\n"
	if err := os.WriteFile(huge, fmt.Appendf(nil, job+job+job+"1 90000"+job[3:], 1, 2, 3, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, "long.swf")
	if err := os.WriteFile(long, []byte(fmt.Sprintf(job, 1)+"2 900000000"+fmt.Sprintf(job, 2)[3:]), 0o600); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, c := range []struct {
		line string
		code int
	}{
		{"sim run", cli.ExitUsage},
		{"sim table1", cli.ExitUsage},
		{"sim run --cores 3 SAMPLE", cli.ExitUsage},
		{"sim run --cores 0 SAMPLE", cli.ExitUsage},
		{"sim run --load 0 SAMPLE", cli.ExitUsage},
		{"sim run --scenario 4 SAMPLE", cli.ExitUsage},
		{"sim run --sites 13 SAMPLE", cli.ExitUsage},
		{"sim run --policy BEST SAMPLE", cli.ExitUsage},
		{"sim run --running never SAMPLE", cli.ExitUsage},
		{"sim run --home maybe SAMPLE", cli.ExitUsage},
		{"sim run --unit 1500ms SAMPLE", cli.ExitUsage},
		{"sim run --period 1000h SAMPLE", cli.ExitUsage},
		{"sim run --period 1s SAMPLE", cli.ExitUsage},
		{"sim run --from 9223372036854775807 SAMPLE", cli.ExitUsage},
		{"sim run --from 9223372036854775807 --period 0 SAMPLE", cli.ExitUsage},
		{"sim run --unit 0 --from 0 --cores 3 --sites 3 HUGE", cli.ExitUsage},
		{"sim run --cores 10 --load 2 SAMPLE", cli.ExitUsage},
		{"sim run --zipf 2 SAMPLE", cli.ExitUsage},
		{"sim run --background 1 SAMPLE", cli.ExitUsage},
		{"sim run --load 1e-9 SAMPLE", cli.ExitUsage},
		{"sim run --from -7 SAMPLE", cli.ExitUsage},
		{"sim run --mapping -1 SAMPLE", cli.ExitUsage},
		{"sim run --gantt HUGE HUGE", cli.ExitUsage},
		{"sim run --starts one --gantt ./one SAMPLE", cli.ExitUsage},
		{"sim run --gantt g.bmp SAMPLE", cli.ExitUsage},
		{"sim run --gantt g SAMPLE", cli.ExitUsage},
		{"sim table1 --scenarios 1 --zipf 2 SAMPLE", cli.ExitUsage},
		{"sim table1 --scenarios 1,2 --background 1 SAMPLE", cli.ExitUsage},
		{"sim table1 --policies SIMPL_DIRECT --whole-share SAMPLE", cli.ExitUsage},
		{"sim table1 --periods 0 SAMPLE", cli.ExitUsage},
		{"sim table1 --loads -1 SAMPLE", cli.ExitUsage},
		{"sim table1 --loads 1,1 SAMPLE", cli.ExitUsage},
		{"sim table1 --scenarios 1,1 SAMPLE", cli.ExitUsage},
		{"sim table1 --policies FAIRSHARE,FAIRSHARE SAMPLE", cli.ExitUsage},
		{"sim table1 SAMPLE SAMPLE", cli.ExitUsage},
		{"sim table1 --workers -1 SAMPLE", cli.ExitUsage},
		{"sim table1 --unit 0 --sensitivity 3 SAMPLE", cli.ExitUsage},
		{"sim table1 --declare asked SAMPLE", cli.ExitUsage},
		{"sim table1 --beyond CE,SIMPL_DIRECT SAMPLE", cli.ExitUsage},
		{"sim table1 --beyond BEST SAMPLE", cli.ExitUsage},
		{"sim table1 --sensitivity -1 SAMPLE", cli.ExitUsage},
		{"sim ranges --workers -1 SAMPLE", cli.ExitUsage},
		{"sim ranges --period 1500ms SAMPLE", cli.ExitUsage},
		{"sim estimates --seeds 0 SAMPLE", cli.ExitUsage},
		{"sim incentives", cli.ExitUsage},
		{"sim incentives --out HUGE HUGE", cli.ExitUsage},
		{"sim incentives --policies BEST SAMPLE", cli.ExitUsage},
		{"sim incentives --unit 1500ms SAMPLE", cli.ExitUsage},
		{"sim incentives --workers -1 SAMPLE", cli.ExitUsage},
		{"sim run --hostile-leader site-06 SAMPLE", cli.ExitUsage},
		{"sim run --withhold 10s SAMPLE", cli.ExitUsage},
		{"sim run --hostile-leader site-02 --withhold-ends SAMPLE", cli.ExitUsage},
		{"sim run --hostile-leader site-02 --withhold-selectively SAMPLE", cli.ExitUsage},
		{"sim run --hostile-leader site-02 --withhold 2h SAMPLE", cli.ExitUsage},
		{"sim leader --withhold 1500ms SAMPLE", cli.ExitUsage},
		{"sim leader --withhold 1s,1s SAMPLE", cli.ExitUsage},
		{"sim leader --withhold soon SAMPLE", cli.ExitUsage},
		{"sim leader --seeds 0 SAMPLE", cli.ExitUsage},
		{"sim run EMPTY", cli.ExitError},
		{"sim run none.swf", cli.ExitError},
		{"sim run .", cli.ExitError},
		{"sim run --period 0 LONG", cli.ExitUsage},
	} {
		line := strings.NewReplacer("SAMPLE", sampleLog, "EMPTY", empty, "HUGE", huge, "LONG", long).Replace(c.line)
		code, out, errs := runCLI(t, "", strings.Fields(line)...)
		errs = errs[strings.Index(errs, "cloudshare: "):]
		if code != c.code || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", line, code, out, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%s", c.line, strings.ReplaceAll(errs, dir+"/", ""))
	}
	goldenfile.Match(t, "sim.txt", all.String())
}
