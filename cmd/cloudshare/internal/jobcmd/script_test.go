package jobcmd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestSubmitScript: a script is the job that its directives say, and the command line outweighs them.
func TestSubmitScript(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, map[string]string{"jobs/in.csv": "1", "jobs/each/a.csv": "2", "jobs/each/b.csv": "3", "jobs/run.sh": `#!/bin/sh
#CLOUDSHARE --cpu 4 --memory 2Gi --label a=b --label 'c=two words'
#CLOUDSHARE --cpu 5 --only lab-1,lab-2 --network
#CLOUDSHARE --input in.csv:data/in.csv --input-each 'each/*.csv:x.csv' --output out/*.csv
#CLOUDSHARE --notify-failed https://hooks.example.org/x
# CLOUDSHARE --gpu 1
echo "$@"
#CLOUDSHARE --gpu 1
`})
	code, out, errs := runCLI(t, "", "submit", "--addr", addr, "jobs/run.sh", "--cpu", "7", "x y")
	if code != 0 || out != "site-1.1\n" || len(b.jobs) != 1 {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	for _, note := range []string{"jobs/run.sh:6: counts for nothing: a directive begins", "jobs/run.sh:8: counts for nothing"} {
		if !strings.Contains(errs, note) {
			t.Errorf("notes %q, want %s", errs, note)
		}
	}
	job := b.jobs[0]
	got := fmt.Sprint(job.Command, len(job.Command), job.Resources, job.Labels, job.Sites.Only, job.Network,
		job.Outputs.Paths, job.Notify, job.Count)
	const want = "[./run.sh --cpu 7 x y] 4 {5 2048 0} map[a:b c:two words] [lab-1 lab-2] true [out/*.csv] " +
		"[{https://hooks.example.org/x [failed]}] 2"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var inputs []string
	for _, in := range job.Inputs {
		inputs = append(inputs, fmt.Sprintf("%s %d %t", in.Path, in.From, in.Executable))
	}
	if all := strings.Join(inputs, ", "); all != "data/in.csv 0 false, x.csv 2 false, run.sh 0 true" {
		t.Errorf("inputs %s", all)
	}
	code, _, errs = runCLI(t, "", "submit", "--addr", addr, "--cpu", "1", "--label", "x=y", "--only", "lab-3",
		"--network=false", "--input", "jobs/in.csv", "--notify", "https://hooks.example.org/y", "--gpu", "2", "jobs/run.sh")
	if code != 0 || len(b.jobs) != 2 {
		t.Fatalf("exit %d, %q", code, errs)
	}
	job = b.jobs[1]
	got = fmt.Sprint(job.Resources, job.Labels, job.Sites.Only, job.Network, len(job.Inputs),
		job.Inputs[0].Path, job.Notify)
	if got != "{1 2048 2} map[x:y] [lab-3] false 3in.csv"+
		"[{https://hooks.example.org/y [ended]} {https://hooks.example.org/x [failed]}]" {
		t.Errorf("over the script's: %s", got)
	}
}

// TestBadScripts: what is wrong is said with the file and its line, and nothing is sent.
func TestBadScripts(t *testing.T) {
	b, addr := newFileBroker(t)
	files := map[string]string{"secret": "s", "dir/x": "x"}
	cases := map[string]string{
		"--bogus":                         "bad.sh:2: unknown flag: --bogus",
		"--wait":                          "bad.sh:2: --wait stands on the command line only",
		"--addr x":                        "bad.sh:2: --addr stands on the command line only",
		"--key x":                         "bad.sh:2: --key stands on the command line only",
		"--file x":                        "bad.sh:2: --file stands on the command line only",
		"--help":                          "bad.sh:2: --help stands on the command line only",
		"-f x":                            "bad.sh:2: unknown shorthand flag",
		"--cpu":                           "bad.sh:2: flag needs an argument: --cpu",
		"--cpu much":                      `bad.sh:2: invalid argument "much" for "--cpu" flag: must be a whole number`,
		"--cpu 1 make":                    `bad.sh:2: "make" is no flag`,
		"--cpu 1 -- make":                 `bad.sh:2: "make" is no flag`,
		"--on-loss maybe":                 "bad.sh:2: invalid argument",
		"--name 'a":                       "bad.sh:2: a quote has no end",
		"--name $HOME":                    "bad.sh:2: $ is not evaluated",
		"--input ../secret":               `bad.sh:2: --input "../secret" is not in the script's folder`,
		"--input /etc/passwd:x":           "is not in the script's folder",
		"--input x/../../secret:x":        "is not in the script's folder",
		"--input link:x":                  "is not in the script's folder",
		"--input-each '../*:x'":           "is not in the script's folder",
		"--input-each 'link/*:x'":         "is not in the script's folder",
		"--input-each '*:x'":              "is not in the script's folder", // the link is among them
		"--input :x":                      "must be FILE[:PATH]",
		"--input ''":                      "must be FILE[:PATH]",
		"--input-each x":                  "must be FILE[:PATH]",
		"--input none":                    "none: no such file",
		"--label x":                       `--label "x": must be NAME=VALUE`,
		"--cpu 4\r":                       "bad.sh:2: ends with CR LF",
		"--name \x1b[2J":                  "bad.sh:2: holds control",
		"--input-url http://h/x:x":        "brokers fetch https",
		strings.Repeat("--cpu 1 ", 20000): "bytes before the first command",
	}
	inFolder(t, files)
	if err := os.MkdirAll("jobs", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", "jobs/link"); err != nil {
		t.Fatal(err)
	}
	for words, why := range cases {
		if err := os.WriteFile("jobs/bad.sh", []byte("#!/bin/sh\n#CLOUDSHARE "+words+"\necho\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, errs := runCLI(t, "", "submit", "--addr", addr, "jobs/bad.sh")
		if code != cli.ExitUsage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, why) {
			t.Errorf("%.40q: exit %d, %q, %.400q, want %s", words, code, out, errs, why)
		}
	}
	for line, why := range map[string]string{
		"sleep 5": "sleep: there is no such file: without -- a script", "dir": "dir is no file", "./none.sh": "no such file",
		"secret": "secret:1: does not begin with #!",
	} {
		code, _, errs := runCLI(t, "", append([]string{"submit", "--addr", addr}, strings.Fields(line)...)...)
		if code != cli.ExitUsage || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, why) {
			t.Errorf("%s: exit %d, %q, want %s", line, code, errs, why)
		}
	}
	if len(b.jobs)+len(b.blobs) != 0 {
		t.Errorf("%d jobs and %d files were sent", len(b.jobs), len(b.blobs))
	}
}
