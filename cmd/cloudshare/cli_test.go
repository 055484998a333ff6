package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

var golden = goldenfile.Match

// cli runs the command line with nothing in the environment.
func cli(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, streams{in: strings.NewReader(stdin), out: &out, err: &errs},
		func(string) string { return "" })
	return code, out.String(), errs.String()
}

// TestHelp shows the help of every command, each with an example.
func TestHelp(t *testing.T) {
	var all strings.Builder
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		code, out, errs := cli(t, "", append(path, "--help")...)
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
	a := &app{getenv: func(string) string { return "" }}
	walk(a.root())
	golden(t, "help.txt", all.String())
}

// TestUsage: what is typed wrong is exit 2, with the reason in one line, and
// nothing on stdout.
func TestUsage(t *testing.T) {
	var all strings.Builder
	for _, line := range []string{
		"bogus", "jobs --bogus", "jobs extra", "job", "job a b", "job a.1/3", "why a.1/3–5", "tasks", "cancel", "cancel a.1 --label k=v", "wait", "wait a.1/3", "wait a.1 --timeout -1s", "rerun a.1", "rerun a.1 --failed --state lost", "logs a.1 --all --task 3", "logs a.1/3 --all", "logs a.1/x", "logs a.1/3,4 --attempt 2", "logs a.1 --tail 0", "logs", "logs x --stream stdin", "logs x --task -1",
		"sites -o xml", "sites -o csv", "report -o xml", "export --format xml", "debug bundle x", "docs man", "broker --site a --pprof 0.0.0.0:0", "policy bogus", "policy set", "policy set --rate-cpu much", "submit", "submit --count many -- true", "submit --key= -- true", "run --key= -- true", "jobs --limit 0", "tasks x --limit 1001", "broker --site a --join localhost:7701",
		"submit --env NOVALUE -- true", "submit --env A=1 --env A=2 -- true", "submit -f testdata/none.yaml", "submit -f testdata/twice.yaml",
		"submit -f x -- true", "submit -f x --count 3", "submit --count 2 --follow -- true",
		"dev --sites 0", "dev --sites 99", "dev --cores 0", "dev --http 7700", "dev --http 0.0.0.0:7700", "dev --http 127.0.0.1:65535",
		"recover", "recover --data-dir x --config y", "recover --data-dir testdata/none", "recover --data-dir testdata/none --hold -1s", "recover --data-dir testdata/none --follow nowhere --yes", "drain site-1", "resume --own", "leave --later", "dev start", "dev start site-1", "dev start site-1 --data-dir testdata/none", "sites --addr ftp://x",
		"broker", "broker --site Bad_Name", "broker --site a --bootstrap --join 127.0.0.1:1", "broker --site a --profile moon",
		"broker --site a --data-dir testdata/none", "broker --site a --http 0.0.0.0:0 --bootstrap", "broker --site a --http nowhere",
		"broker --site a --peer 127.0.0.1:99999", "broker --site a --join nowhere", "broker --site a --cores -1",
		"broker --site a --cores 2 --reserve 3", "broker --site a --memory lots", "broker --site a --min-free some", "broker --site a --log-level loud",
		"broker --site a --log-format xml", "broker --site a --lease -1s", "broker --site a --http 127.0.0.1:1 --peer 127.0.0.1:1",
		"broker --config testdata/none.yaml", "broker --config testdata/typo.yaml", "broker --config testdata/type.yaml",
		"broker --config testdata/twice.yaml",
	} {
		code, out, errs := cli(t, "", strings.Fields(line)...)
		if code != exitUsage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", line, code, out, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%s", line, errs)
	}
	golden(t, "usage.txt", all.String())
}

// broker answers like one that knows the job site-1.1.
func broker(t *testing.T) string {
	t.Helper()
	const job = `{"id":"site-1.1","name":"n","site":"site-1","state":"succeeded","reason":"","durability":"federation",
"submitted_at":null,"started_at":null,"ended_at":null,"counts":{"succeeded":2,"failed":0},"spec":{"command":["true"],"resources":{"cpu":1,"memory":"0"}}}`
	const whole = `{"id":"site-1.20","name":"sweep","site":"site-1","state":"failed","reason":"exited with code 3","durability":"federation","submitted_at":null,"started_at":null,"ended_at":null,
"counts":{"succeeded":197,"failed":3},"spec":{"name":"sweep","command":["sh","-c","echo 'a b'\n$X"],"image":"alpine:3","env":{"B":"x y","A":"1"},"count":3,"indices":"3,17,40","timeout":"1m30s",
"resources":{"cpu":2,"memory":"256Mi","gpu":1},"retry":{"max_attempts":3,"on_loss":"never"},"priority":5,"labels":{"team":"a b"},"sites":{"only":["site-1","site-2"],"not":["site-3"]},"selectors":["gpu=a100"]},
"failed":[{"index":3,"state":"failed","exit_code":3,"site":"site-2","reason":"exited with code 3"},{"index":17,"state":"failed","signal":9},{"index":40,"state":"lost","reason":"lost by site-2"}]}`
	answers := map[string]string{
		"POST /v1/jobs": `{"id":"site-1.1","state":"queued","durability":"federation","reason":"no room"}`,
		"GET /v1/jobs":  `{"items":[` + job + `],"next":"more"}`, "GET /v1/jobs/site-1.1": job,
		"GET /v1/jobs/site-1.9":         strings.Replace(job, "succeeded", "failed", 1),
		"GET /v1/jobs/site-1.20":        whole,
		"GET /v1/jobs/site-1.10":        strings.Replace(job, "succeeded", "cancelled", 1),
		"GET /v1/jobs/site-1.11":        strings.Replace(job, "succeeded", "lost", 1),
		"GET /v1/jobs/site-1.1/tasks":   `{"items":[{"index":0,"state":"failed","reason":"a\u001b[31mb\nc","site":"site-2","attempt":1,"exit_code":3}],"next":""}`,
		"GET /v1/jobs/site-1.1/logs":    "hello\n",
		"DELETE /v1/jobs/site-1.1":      job,
		"POST /v1/jobs/site-1.20/rerun": `{"id":"site-1.20","state":"queued","durability":"federation","reason":"no room"}`,
		"GET /v1/jobs/site-1.20/logs": `{"task":3,"text":"a\nb"}
{"task":17,"text":"c\n"}
{"task":17,"base64":"ZAo="}
{"task":40,"problem":{"type":"urn:cloudshare:problem:executor-unreachable","title":"Away","status":503}}
`,
		"POST /v1/cancel": `{"items":[{"job":"site-1.1","state":"cancelled"},{"job":"site-1.2/3","problem":{"type":"urn:cloudshare:problem:already-ended","title":"The job has ended","status":409}}]}`,
		"GET /v1/wait":    `{"items":[{"job":"site-1.1","state":"succeeded","over":true},{"job":"site-1.9","state":"failed","reason":"exited with code 3","over":true}],"done":true}`,
		"GET /v1/sites":   `{"items":[{"id":"site-1","state":"alive","voter":true,"capacity":{"cpu":2},"exposed":{"cpu":1.5},"addresses":{"http":"127.0.0.1:1"},"machines":[{"name":"local","exposed":{"cpu":1.5},"free":{"cpu":1},"runs":["commands"],"labels":{"zone":"b","gpu":"a100"}}]}],"next":""}`,
		"GET /v1/queue":   `{"items":[{"site":"site-1","waiting":3,"cpu":12500000.5,"priority":"-8460000000"}],"next":""}`,
		"GET /v1/quota":   `{"items":[{"site":"site-1","quotas":[{"quota":"tasks","used":1,"limit":1000000,"full":"refuse","meaning":"tasks that have not ended"},{"quota":"kept_jobs","used":1000,"limit":1000,"full":"drop_oldest","meaning":"ended jobs that are kept"}]},{"site":"site-2","quotas":[{"quota":"tasks","used":0,"limit":1000000},{"quota":"kept_jobs","used":5,"limit":0}]}],"next":""}`,
		"GET /v1/ledger":  `{"index":7,"time":5,"unit":"weight·quantum","sites":[{"site":"site-1","contribution":"8460000000","utility":"48000000","priority":"8412000000"}],"matrix":[{"owner":"site-1","executor":"site-2","tasks":1,"a":"48000000","b":"8","r":"7"}]}`,
		"GET /v1/policy":  `{"policy":"SIMPL_DIRECT","running":"partial","rate_cpu":1,"quantum_ms":1}`,
		"GET /v1/report":  `{"site":"site-1","scope":"own","by":"site","first":"2026-01-02T03:04:05Z","last":null,"rows":[{"key":"=site-1","own_core_hours":1.5,"lent_core_hours":412.25,"used_core_hours":0.0012345,"attempts":3,"tasks":2,"succeeded":2,"wait":{"count":2,"mean":1.25,"p50":1,"p95":2}}],"total":{"key":"total","wait":{"count":0}},"gaps":[{"from_entry":3,"to_entry":9,"reason":"the broker was away"}]}`,
		"GET /v1/archive": "{\"job\":\"site-1.1\"}\n",
		"POST /v1/drain":  `{"draining":true,"own":true}`,
		"POST /v1/resume": `{"draining":false,"own":false}`,
		"POST /v1/leave":  `{"leaving":true}`,
		"PUT /v1/policy":  `{"policy":"FAIRSHARE","running":"partial"}`,
		"GET /v1/status":  `{"site":"site-1","lead":"site-2","term":3,"index":9,"state_hash":{"index":9,"hash":"ab"},"version":"v","federation":"f","voters":["site-1","site-2"],"members":["site-1"],"compared":{"index":8,"with":["site-2"],"differs":["site-3"]},"outputs":{"kept":137,"bytes":1572864,"max_bytes":10737418240,"keep_ms":86400000,"removed_by_age":12,"removed_by_bytes":3,"trouble":"no space left on device"},"handlers":[{"name":"local","status":"ok"}]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Content-Type") == wire.TypeNDJSON {
			body, _ := io.ReadAll(r.Body)
			for i, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
				if strings.Contains(line, "bad") {
					_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:invalid-job","title":"Not valid","status":422,"line":2}`+"\n")
					continue
				}
				fmt.Fprintf(w, `{"id":"site-1.%d","state":"queued"}`+"\n", i+1)
			}
			return
		}
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if ok {
			_, _ = io.WriteString(w, answer)
			return
		}
		status, name := http.StatusNotFound, "not-found"
		switch r.URL.Path {
		case "/v1/jobs/full.1":
			status, name = http.StatusTooManyRequests, "queue-full"
		case "/v1/jobs/away.1":
			status, name = http.StatusServiceUnavailable, "owner-unreachable"
		case "/v1/jobs/over.1":
			status, name = http.StatusConflict, "already-ended"
		case "/v1/jobs/broken.1":
			status, name = http.StatusInternalServerError, "internal"
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"urn:cloudshare:problem:%s","title":"No","status":%d,"detail":"%s"}`, name, status, r.URL.Path)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestCommands shows what every command prints, in each form.
func TestCommands(t *testing.T) {
	addr := broker(t)
	var all strings.Builder
	for _, c := range []struct {
		line, stdin string
		code        int
	}{
		{"submit --count 2 -- sleep 1", "", 0},
		{"submit --wait -- true", "", 0},
		{"submit --follow -- true", "", 0},
		{"submit -o json true -o ignored", "", 0},
		{"submit -f -", "command: [true]\nresources: {cpu: 2}\n", 0},
		{"submit -f -", "command: [a]\n---\n---\nname: bad\n", exitRefused},
		{"submit -f - -o json", `{"command":["a"]} {"command":["b"]}`, 0},
		{"submit -f -", "a: [b", exitUsage},
		{"submit -f -", "", exitUsage},
		{"submit -f -", "1: {2: 3}", exitUsage},
		{"jobs --limit 1", "", 0},
		{"job site-1.1", "", 0},
		{"job site-1.1 -o yaml", "", 0},
		{"job site-1.20", "", 0},
		{"job site-1.20 --watch", "", exitFailed},
		{"job site-1.10 --watch -o json", "", exitCancelled},
		{"job site-1.1 --watch", "", 0},
		{"tasks site-1.1/0,5-9 --state failed --quiet", "", 0},
		{"jobs --quiet --limit 1", "", 0},
		{"rerun site-1.20 --failed", "", 0},
		{"rerun site-1.20/3,17 --wait", "", exitFailed},
		{"rerun site-1.20 --state failed --quiet --wait", "", exitFailed},
		{"cancel site-1.1 site-1.2/3", "", exitRefused},
		{"cancel --label a=b -o json", "", exitRefused},
		{"wait site-1.1 site-1.9", "", exitFailed},
		{"wait site-1.1 site-1.9 -o json", "", exitFailed},
		{"logs site-1.20/3,17,40", "", exitUnreachable},
		{"logs site-1.20 --all --prefix", "", exitUnreachable},
		{"logs site-1.1/0 --tail 3", "", 0},
		{"job site-1.2", "", exitNotFound},
		{"job full.1", "", exitRefused},
		{"job away.1", "", exitUnreachable},
		{"cancel over.1", "", exitRefused},
		{"job broken.1", "", exitError},
		{"tasks site-1.1", "", 0},
		{"logs site-1.1", "", 0},
		{"cancel site-1.1", "", 0},
		{"sites", "", 0},
		{"sites --machines", "", 0},
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
	} {
		code, out, errs := cli(t, c.stdin, append(strings.Fields(c.line), "--addr="+addr)...)
		if strings.HasPrefix(c.line, "submit") { // its flags end at the command
			code, out, errs = cli(t, c.stdin, append([]string{"--addr=" + addr}, strings.Fields(c.line)...)...)
		}
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.line, code, c.code, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%sstderr: %s\n", c.line, out, errs)
	}
	golden(t, "commands.txt", all.String())
}

// TestWaitCodes: under --wait the exit code says how the job ended.
func TestWaitCodes(t *testing.T) {
	addr := broker(t)
	a := &app{streams: streams{out: io.Discard, err: io.Discard}, addr: addr}
	c, err := a.client()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"site-1.1": 0, "site-1.9": 10, "site-1.10": 11, "site-1.11": 12, "site-1.5": exitNotFound} {
		if got := codeOf(a.wait(context.Background(), c, []string{id})); got != want {
			t.Errorf("%s: exit %d, want %d", id, got, want)
		}
	}
	if got := codeOf(a.wait(context.Background(), c, []string{"site-1.1", "site-1.11", "site-1.9"})); got != 12 {
		t.Errorf("several jobs: exit %d, want that of the first that did not succeed", got)
	}
}

// TestUnreachable: nobody at the address is exit 3 with what to do.
func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	code, out, errs := cli(t, "", "jobs", "--addr", srv.URL)
	if code != exitUnreachable || out != "" || !strings.Contains(errs, "cloudshare dev") {
		t.Errorf("exit %d %q %q", code, out, errs)
	}
}

// TestAddrFromEnvironment: CLOUDSHARE_ADDR is the default of --addr.
func TestAddrFromEnvironment(t *testing.T) {
	addr := broker(t)
	var out, errs bytes.Buffer
	code := run(context.Background(), []string{"queue"}, streams{strings.NewReader(""), &out, &errs}, func(name string) string {
		if name == "CLOUDSHARE_ADDR" {
			return addr
		}
		return ""
	})
	if code != 0 || !strings.Contains(out.String(), "site-1") {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
}
