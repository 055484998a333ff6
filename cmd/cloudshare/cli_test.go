package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// runCLI runs the command line with nothing in the environment.
func runCLI(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runWith(t.Context(), cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, args...)
	return code, out.String(), errs.String()
}

// runWith runs the command line on streams, with nothing in the environment.
func runWith(ctx context.Context, s cli.Streams, args ...string) int {
	return run(ctx, args, s, func(string) string { return "" })
}

// TestHelp shows the help of every command, each with an example.
func TestHelp(t *testing.T) {
	var all strings.Builder
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		code, out, errs := runCLI(t, "", append(path, "--help")...)
		if code != 0 || errs != "" {
			t.Errorf("%v --help: exit %d %s", path, code, errs)
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		fmt.Fprintf(&all, "==== %s ====\n%s\n", c.CommandPath(), out)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	a := &cli.App{Getenv: func(string) string { return "" }}
	walk(newRoot(a))
	goldenfile.Match(t, "help.txt", all.String())
}

// TestUsage: what is typed wrong is exit 2, with the reason in one line, and
// nothing on stdout.
func TestUsage(t *testing.T) {
	var all strings.Builder
	for _, line := range []string{
		"bogus", "sumbit", "jobs --bogus", "jobs extra", "job", "job a b", "job a.1/3", "why a.1/3–5", "tasks", "cancel", "cancel a.1 --label k=v", "wait", "wait a.1/3", "wait a.1 --timeout -1s", "rerun a.1", "rerun a.1 --failed --state lost", "hold", "release a.1 b.1", "logs a.1 --all --task 3", "logs a.1/3 --all", "logs a.1/x", "logs a.1/3,4 --attempt 2", "logs a.1 --tail 0", "logs", "logs x --stream stdin", "logs x --task -1",
		"sites -o xml", "sites -o csv", "report -o xml", "export --format xml", "debug bundle x", "docs man", "broker --site a --pprof 0.0.0.0:0", "policy bogus", "policy set", "policy set --rate-cpu much", "submit", "submit --count many -- true", "submit --cpu 1.5 -- true", "submit --count 99999999999999999999 -- true", "submit --key= -- true", "run --key= -- true", "jobs --limit 0", "tasks x --limit 1001", "broker --site a --join localhost:7701",
		"submit --env NOVALUE -- true", "submit --env A=1 --env A=2 -- true", "submit -f testdata/none.yaml", "submit -f testdata/twice.yaml",
		"submit -f x -- true", "submit -f x --count 3", "submit --count 2 --follow -- true",
		"submit --output json -- true", "submit --input testdata/none -- true", "submit --input-each 'x -- true", "run --output testdata/ -- true", "fetch", "fetch a.1/3", "fetch a.1 -o json",
		"dev --sites 0", "dev --sites 99", "dev --cores 0", "dev --http 7700", "dev --http 0.0.0.0:7700", "dev --http 127.0.0.1:65535",
		"recover", "recover --data-dir x --config y", "recover --data-dir testdata/none", "recover --data-dir testdata/none --hold -1s", "recover --data-dir testdata/none --follow nowhere --yes", "drain site-1", "resume --own", "leave --later", "dev start", "dev start site-1", "dev start site-1 --data-dir testdata/none", "sites --addr ftp://x",
		"broker", "broker --site Bad_Name", "broker --site a --bootstrap --join 127.0.0.1:1", "broker --site a --profile moon",
		"broker --site a --data-dir testdata/none", "broker --site a --http-tls-cert a.pem --bootstrap", "broker --site a --http 0.0.0.0:0 --bootstrap", "broker --site a --http nowhere",
		"broker --site a --peer 127.0.0.1:99999", "broker --site a --join nowhere", "broker --site a --cores -1",
		"broker --site a --cores 2 --reserve 3", "broker --site a --memory lots", "broker --site a --min-free some", "broker --site a --log-level loud",
		"broker --site a --log-format xml", "broker --site a --lease -1s", "broker --site a --http 127.0.0.1:1 --peer 127.0.0.1:1",
		"broker --config testdata/none.yaml", "broker --config testdata/typo.yaml", "broker --config testdata/type.yaml",
		"broker --config testdata/twice.yaml",
		"invite", "invite a b", "invite a --for soon", "invite a --again --no-vote", "approve", "rebind a", "members extra", "motions --state open",
		"key bogus", "key show", "key show x", "key rotate", "key backup", "key recover",
		"key recover --data-dir testdata/none --file testdata/none",
	} {
		code, out, errs := runCLI(t, "", strings.Fields(line)...)
		if code != cli.ExitUsage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", line, code, out, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%s", line, errs)
	}
	goldenfile.Match(t, "usage.txt", all.String())
}

// TestCommands shows what every command prints, in each form.
func TestCommands(t *testing.T) {
	addr := clitest.Broker(t)
	var all strings.Builder
	for _, c := range []struct {
		line, stdin string
		code        int
	}{
		{"submit --count 2 -- sleep 1", "", 0},
		{"submit --wait -- true", "", 0},
		{"submit --follow -- true", "", 0},
		{"submit -o json -- true -o ignored", "", 0},
		{"submit -f -", "command: [true]\nresources: {cpu: 2}\n", 0},
		{"submit -f -", "command: [a]\n---\n---\nname: bad\n", cli.ExitRefused},
		{"submit -f - -o json", `{"command":["a"]} {"command":["b"]}`, 0},
		{"submit -f -", "a: [b", cli.ExitUsage},
		{"submit -f -", "", cli.ExitUsage},
		{"submit -f -", "1: {2: 3}", cli.ExitUsage},
		{"jobs --limit 1", "", 0},
		{"job site-1.1", "", 0},
		{"job site-1.1 -o yaml", "", 0},
		{"job site-1.20", "", 0},
		{"job site-1.20 --watch", "", cli.ExitFailed},
		{"job site-1.10 --watch -o json", "", cli.ExitCancelled},
		{"job site-1.1 --watch", "", 0},
		{"tasks site-1.1/0,5-9 --state failed --quiet", "", 0},
		{"jobs --quiet --limit 1", "", 0},
		{"rerun site-1.20 --failed", "", 0},
		{"hold site-1.1", "", 0},
		{"release site-1.1", "", 0},
		{"hold site-1.99", "", cli.ExitNotFound},
		{"rerun site-1.20/3,17 --wait", "", cli.ExitFailed},
		{"rerun site-1.20 --state failed --quiet --wait", "", cli.ExitFailed},
		{"fetch site-1.20", "", cli.ExitNotFound},
		{"cancel site-1.1 site-1.2/3", "", cli.ExitRefused},
		{"cancel --label a=b -o json", "", cli.ExitRefused},
		{"wait site-1.1 site-1.9", "", cli.ExitFailed},
		{"wait site-1.1 site-1.9 -o json", "", cli.ExitFailed},
		{"logs site-1.20/3,17,40", "", cli.ExitUnreachable},
		{"logs site-1.20 --all --prefix", "", cli.ExitUnreachable},
		{"logs site-1.1/0 --tail 3", "", 0},
		{"job site-1.2", "", cli.ExitNotFound},
		{"job full.1", "", cli.ExitRefused},
		{"job away.1", "", cli.ExitUnreachable},
		{"cancel over.1", "", cli.ExitRefused},
		{"job broken.1", "", cli.ExitError},
		{"tasks site-1.1", "", 0},
		{"logs site-1.1", "", 0},
		{"cancel site-1.1", "", 0},
		{"sites", "", 0},
		{"sites --machines", "", 0},
		{"sites plausibility", "", 0},
		{"sites plausibility -o json", "", 0},
		{"queue", "", 0},
		{"quota", "", 0},
		{"quota --all", "", 0},
		{"quota -o json", "", 0},
		{"ledger", "", 0},
		{"ledger -o json", "", 0},
		{"queue -o json", "", 0},
		{"policy", "", 0},
		{"policy set --policy FAIRSHARE --prefer-own=false -o json", "", 0},
		{"status", "", 0},
		{"drain --own", "", 0},
		{"resume -o json", "", 0},
		{"leave --no-wait", "", 0},
		{"report", "", 0},
		{"report --by day --since 7d -o csv", "", 0},
		{"export --format csv --label a=b", "", 0},
		{"leave --now --no-wait -o json", "", 0},
		{"members", "", 0},
		{"members -o yaml", "", 0},
		{"invitations", "", 0},
		{"motions --all", "", 0},
		{"invite lab-2", "", 0},
		{"revoke lab-2", "", 0},
		{"revoke lab-9", "", cli.ExitNotFound},
		{"approve lab-3", "", 0},
		{"approve 9", "", 0},
		{"approve 99", "", cli.ExitNotFound},
		{"ban site-2", "", 0},
		{"ban site-2 -o json", "", 0},
	} {
		// First: behind a command to be run it would be an argument of that, and the job go to
		// whichever broker listens at the default address.
		code, out, errs := runCLI(t, c.stdin, append([]string{"--addr=" + addr}, strings.Fields(c.line)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.line, code, c.code, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%sstderr: %s\n", c.line, out, errs)
	}
	goldenfile.Match(t, "commands.txt", all.String())
}

// TestChoicesBeforeTheBroker: a value that no broker would take is refused with those
// that are known, where no broker answers, too. Each was "no broker answers" once.
func TestChoicesBeforeTheBroker(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	for line, known := range map[string]string{
		"jobs --state bogus":                "queued, running, succeeded, failed, cancelled, lost or withdrawn",
		"tasks a.1 --state bogus":           "queued, assigned, running, stopping, succeeded, failed, cancelled, lost, withdrawn or held",
		"logs a.1 --state bogus":            "lost, withdrawn or held",
		"logs a.1 --stream bogus":           "stdout or stderr",
		"rerun a.1 --state bogus":           "lost, withdrawn or held",
		"events --kind bogus":               "federation, policy, job, task, home, site, federation.founded",
		"report --by bogus":                 "site, user, hour, day, month or label:KEY",
		"export --format bogus":             "json, csv or swf",
		"policy set --policy bogus":         "ORIG_DIRECT, REL_DIRECT, SIMPL_DIRECT, FAIRSHARE, ROUND_ROBIN, ALONE or CE",
		"policy set --running bogus":        "partial or completed",
		"submit --on-loss bogus -- true":    "fenced, immediate or never",
		"run --on-loss bogus -- true":       "fenced, immediate or never",
		"jobs -o bogus":                     "table, json or yaml",
		"sites --max-staleness bogus":       "a duration of 0 or more",
		"dev --coordination bogus":          "raft or zookeeper",
		"sim run --home bogus x.swf":        "reported, unreported or never",
		"sim run --gantt bogus x.swf":       ".svg or .png",
		"broker --site a --log-level bogus": "debug, info, warn or error",
	} {
		code, out, errs := runCLI(t, "", append([]string{"--addr=" + srv.URL}, strings.Fields(line)...)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(errs, "bogus") || !strings.Contains(errs, known) ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d %q %q", line, code, out, errs)
		}
	}
}

// TestUnreachable: nobody at the address is exit 3 with what to do.
func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	code, out, errs := runCLI(t, "", "jobs", "--addr", srv.URL)
	if code != cli.ExitUnreachable || out != "" || !strings.Contains(errs, "cloudshare dev") {
		t.Errorf("exit %d %q %q", code, out, errs)
	}
}

// TestAddrFromEnvironment: CLOUDSHARE_ADDR is the default of --addr.
func TestAddrFromEnvironment(t *testing.T) {
	addr := clitest.Broker(t)
	var out, errs bytes.Buffer
	code := run(context.Background(), []string{"queue"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		func(name string) string {
			if name == "CLOUDSHARE_ADDR" {
				return addr
			}
			return ""
		})
	if code != 0 || !strings.Contains(out.String(), "site-1") {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
}
