package jobcmd

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// fileBroker is a broker that keeps blobs, takes jobs, and has files of site-1.1.
type fileBroker struct {
	t        *testing.T
	mu       sync.Mutex
	blobs    map[string]string
	jobs     []jobspec.Spec
	imported []string
	left     map[string]string // of task 0 of site-1.1
	count    int               // its tasks
	exitCode int
	behind   string           // why not all files of its task came
	away     []wire.FilesAway // of its task, answer by answer, the last of them from then on
}

func newFileBroker(t *testing.T) (*fileBroker, string) {
	t.Helper()
	b := &fileBroker{t: t, blobs: map[string]string{}, left: map[string]string{}, count: 1}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/blobs/missing", b.missing)
	mux.HandleFunc("PUT /v1/blobs/{sha}", func(_ http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		b.blobs[r.PathValue("sha")] = string(content)
	})
	mux.HandleFunc("POST /v1/imports", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.imported = append(b.imported, string(body))
		_, _ = io.WriteString(w, `{}`)
	})
	mux.HandleFunc("POST /v1/jobs", b.submit)
	mux.HandleFunc("GET /v1/jobs/site-1.1", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id":"site-1.1","state":"succeeded","counts":{"failed":%d},"spec":{"count":%d,"outputs":{"paths":["x"]}}}`,
			len(b.away), b.count)
	})
	mux.HandleFunc("GET /v1/jobs/site-1.1/tasks", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") == "succeeded" {
			t := wire.Task{State: "succeeded", Reason: b.behind}
			_ = json.NewEncoder(w).Encode(wire.List[wire.Task]{Items: []wire.Task{t}})
			return
		}
		if r.URL.Query().Get("state") != "" && len(b.away) > 0 {
			b.listAway(w)
			return
		}
		state := map[bool]string{true: "succeeded", false: "failed"}[b.exitCode == 0]
		fmt.Fprintf(w, `{"items":[{"index":0,"state":"%s","attempt":1,"exit_code":%d,"started_at":"2026-01-02T03:04:05Z"}]}`,
			state, b.exitCode)
	})
	mux.HandleFunc("GET /v1/jobs/site-1.1/logs", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/jobs/site-1.1/files", b.list)
	mux.HandleFunc("GET /v1/jobs/site-1.1/files/{path...}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, b.left[r.PathValue("path")])
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return b, srv.URL
}

func (b *fileBroker) missing(w http.ResponseWriter, r *http.Request) {
	var q struct {
		SHA256 []string `json:"sha256"`
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	missing := []string{}
	for _, h := range q.SHA256 {
		if _, ok := b.blobs[h]; !ok {
			missing = append(missing, h)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"missing": missing})
}

// submit takes a job only as a broker does.
func (b *fileBroker) submit(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	for line := range strings.SplitSeq(strings.TrimSpace(string(body)), "\n") {
		spec, err := jobspec.ParseSpec([]byte(line))
		if err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"type":"%sinvalid-job","title":"No","status":422,"detail":%q}`, wire.ProblemPrefix, err)
			return
		}
		for _, in := range spec.Inputs {
			_, there := b.blobs[in.HashText()]
			if !there && in.From != jobspec.FromURL && in.From != jobspec.FromContent {
				b.t.Errorf("%s is submitted before it is sent", in.Path)
			}
		}
		b.jobs = append(b.jobs, spec)
		_, _ = io.WriteString(w, `{"id":"site-1.1","state":"queued"}`+"\n")
	}
}

func (b *fileBroker) list(w http.ResponseWriter, _ *http.Request) {
	items := []map[string]any{}
	for path, content := range b.left {
		items = append(items, map[string]any{
			"task": 0, "attempt": 1, "path": path, "size": len(content), "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(content))),
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "next": ""})
}

// listAway gives out the task, whose files are away.
func (b *fileBroker) listAway(w http.ResponseWriter) {
	t := wire.Task{State: "failed"}
	if b.away[0].Why != "" {
		t.FilesAway = &b.away[0]
	}
	_ = json.NewEncoder(w).Encode(wire.List[wire.Task]{Items: []wire.Task{t}})
	if len(b.away) > 1 {
		b.away = b.away[1:]
	}
}

// inFolder makes a folder of files the working directory.
func inFolder(t *testing.T, contents map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range contents {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubmitSendsFiles: what flags name is in the job that the broker gets, which has the bytes before.
func TestSubmitSendsFiles(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, map[string]string{"sim.py": "print()", "cfg/a": "1", "in/1.csv": "one", "in/2.csv": "two"})
	code, out, errs := runCLI(t, "", "submit", "--addr", addr, "--input", "sim.py", "--input", "cfg:etc",
		"--input-each", "in/*.csv:in.csv", "--input-url", "https://a.example/ref.fa:ref.fa", "--output", "out/*.csv",
		"--output", "model/", "--output-optional", "log", "--output-max", "2Gi", "--output-when", "success",
		"--", "python3", "sim.py")
	if code != 0 || out != "site-1.1\n" || !strings.Contains(errs, "sent ") || len(b.jobs) != 1 {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	job := b.jobs[0]
	var inputs []string
	for _, in := range job.Inputs {
		inputs = append(inputs, fmt.Sprintf("%s %d %t", in.Path, in.From, in.Blob.Size == int64(len(b.blobs[in.HashText()]))))
	}
	if got := strings.Join(inputs, ", "); got != "sim.py 0 true, etc 1 true, in.csv 2 true, ref.fa 4 false" || job.Count != 2 {
		t.Errorf("%d tasks of %s", job.Count, got)
	}
	if o := job.Outputs; strings.Join(append(o.Paths, o.Optional...), " ") != "model/ out/*.csv log" || o.MaxBytes != 2<<30 || o.When != 1 {
		t.Errorf("%+v", o)
	}
	if len(b.imported) != 1 || b.imported[0] != `{"url":"https://a.example/ref.fa"}` {
		t.Errorf("imported %q", b.imported)
	}
	if _, _, errs = runCLI(t, "", "submit", "--addr", addr, "-o", "json", "--input", "sim.py", "--", "true"); strings.Contains(errs, "sent") {
		t.Errorf("sent again: %q", errs)
	}
}

// TestSubmitFileNamesFiles: a job's file names files beside it; what it names otherwise stays as it is.
func TestSubmitFileNamesFiles(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, map[string]string{
		"jobs/in.txt": "in", "jobs/run": "#!", "jobs/dir/x": "x",
		"jobs/two.yaml": `command: [./run]
inputs:
  - {path: data/in.txt, file: ./in.txt}
  - {file: run, executable: true}
  - {path: d, file: dir}
  - {path: note, content: hello}
outputs: {paths: [out]}
---
command: ["true"]
inputs: [{path: x, url: "https://a.example/x"}]
`,
	})
	code, out, errs := runCLI(t, "", "submit", "--addr", addr, "-f", "jobs/two.yaml")
	if code != 0 || strings.Count(out, "\n") != 2 || len(b.jobs) != 2 {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	var inputs []string
	for _, in := range b.jobs[0].Inputs {
		inputs = append(inputs, fmt.Sprintf("%s %d %t", in.Path, in.From, in.Executable))
	}
	if got := strings.Join(inputs, ", "); got != "data/in.txt 0 false, run 0 true, d 1 false, note 3 false" {
		t.Error(got)
	}
	if len(b.jobs[1].Inputs) != 1 || len(b.imported) != 1 {
		t.Errorf("%+v, %q", b.jobs[1], b.imported)
	}
}

// TestFilesTypedWrong: exit 2 and one line, before anything is sent.
func TestFilesTypedWrong(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, map[string]string{
		"a": "", "in/1": "", "in/2": "", "out.csv": "mine", "model/x": "",
		"none.yaml": `{"command":["true"],"inputs":[{"path":"x","file":"nowhere"}]}`, "no.yaml": `{"command":["true"],"inputs":[{"file":3}]}`,
		"path.yaml": `{"command":["true"],"inputs":[{"path":1,"file":"a"}]}`,
	})
	for line, want := range map[string]string{
		"submit --input nowhere -- true":                        "nowhere",
		"submit --input a: -- true":                             "no path behind its colon",
		"submit --input-each in/* -- true":                      "must be PATTERN:PATH",
		"submit --input-each z*:in -- true":                     "z* names no file",
		"submit --input-each in/*:in --count 3 -- true":         "names 2 files: omit --count",
		"submit --input-url ftp://x/y:z -- true":                "give its https address, or fetch it here and send it by --input",
		"submit --input-url http://a.example/ref.fa:z -- true":  "nothing vouches for what comes by http",
		"submit --input-url https://a.example/ref.fa -- true":   "must be URL:PATH",
		"submit --output json -- true":                          "the form of the answer is -o json",
		"submit --output-when never -- true":                    "always",
		"submit -f none.yaml":                                   "inputs.0",
		"submit -f no.yaml":                                     "file must name a file",
		"submit -f path.yaml":                                   "path must be a text",
		"submit -f none.yaml --output x":                        "put outputs.paths into the file",
		"run --output *.csv -- true":                            "out.csv is here already",
		"run --output model/ -- true":                           "model is here already",
		"run --input-each in/*:in -- true":                      "run is for one task",
		"fetch site-1.1 -o json":                                "--output json",
		"fetch site-1.1/3":                                      "names a task",
		"fetch":                                                 "arg",
		"submit --input a --follow --input-each in/*:x -- true": "--follow prints one task's output",
	} {
		args := append(strings.Fields(line)[:1:1], append([]string{"--addr", addr}, strings.Fields(line)[1:]...)...)
		code, out, errs := runCLI(t, "", args...)
		if code != cli.ExitUsage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q, %q", line, code, out, errs)
		}
	}
	if len(b.blobs)+len(b.jobs) != 0 {
		t.Errorf("%d blobs and %d jobs were sent", len(b.blobs), len(b.jobs))
	}
}

// TestRunBringsFilesBack: into the working directory, also those of a task that failed; never over what is there.
func TestRunBringsFilesBack(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, map[string]string{"in.csv": "in"})
	b.left = map[string]string{"out/1.csv": "one", "in.csv": "in"}
	code, _, errs := runCLI(t, "", "run", "--addr", addr, "--input", "in.csv", "--output", "*.csv", "--output", "out/", "--", "true")
	if got, err := os.ReadFile("out/1.csv"); code != 0 || err != nil || string(got) != "one" ||
		!strings.Contains(errs, "fetched 1 file, 3 B; 1 were here") {
		t.Errorf("exit %d, %q, %v: %s", code, got, err, errs)
	}
	b.left, b.exitCode = map[string]string{"late": "new"}, 3
	if code, _, errs = runCLI(t, "", "run", "--addr", addr, "--output", "lat*", "--", "true"); code != 3 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if got, err := os.ReadFile("late"); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
	b.left, b.exitCode = map[string]string{"late": "newer", "more": "x"}, 0
	code, _, errs = runCLI(t, "", "run", "--addr", addr, "--output", "./", "--", "true")
	if code != cli.ExitError || !strings.Contains(errs, "late in . is there already, and is another one") ||
		!strings.Contains(errs, "cloudshare fetch site-1.1 -o FOLDER") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs = runCLI(t, "", "run", "--addr", addr, "--output", "late", "--force", "--", "true"); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if got, err := os.ReadFile("late"); err != nil || string(got) != "newer" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFetchCommand: of several tasks each has a folder; a second time nothing comes.
func TestFetchCommand(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, nil)
	if code, _, errs := runCLI(t, "", "fetch", "--addr", addr, "site-1.1"); code != cli.ExitNotFound ||
		!strings.Contains(errs, "job site-1.1 has left no files: it is succeeded") {
		t.Errorf("exit %d: %s", code, errs)
	}
	b.left = map[string]string{"a": "one", "b/c": "two"}
	code, out, errs := runCLI(t, "", "fetch", "--addr", addr, "site-1.1", "-o", "res", "--output", "json")
	var answer wire.List[map[string]any]
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || len(answer.Items) != 2 ||
		errs != "fetched 2 files, 6 B\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if got, err := os.ReadFile("res/b/c"); err != nil || string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	if code, out, errs = runCLI(t, "", "fetch", "--addr", addr, "site-1.1", "-o", "res"); code != 0 || out != "" ||
		errs != "fetched 0 files, 0 B; 2 were here\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	b.count = 2
	if code, _, errs = runCLI(t, "", "fetch", "--addr", addr, "site-1.1"); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if got, err := os.ReadFile("0/a"); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if code, _, errs = runCLI(t, "", "fetch", "--addr", addr, "site-1.1", "--task", "0", "-o", "one"); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := os.Stat("one/a"); err != nil {
		t.Error(err)
	}
}

// TestFetchTellsWhatStaysBehind: a task succeeded, and not all that its outputs name came.
func TestFetchTellsWhatStaysBehind(t *testing.T) {
	b, addr := newFileBroker(t)
	inFolder(t, nil)
	b.behind = "1 output cannot travel: a symbolic link"
	code, _, errs := runCLI(t, "", "fetch", "--addr", addr, "site-1.1")
	if code != cli.ExitNotFound || !strings.Contains(errs, "site-1.1/0: "+b.behind+"\n") {
		t.Errorf("no file at all: exit %d: %s", code, errs)
	}
	b.left = map[string]string{"a": "one"}
	code, _, errs = runCLI(t, "", "fetch", "--addr", addr, "site-1.1")
	if want := "fetched 1 file, 3 B\nsite-1.1/0: " + b.behind + "\n"; code != 0 || errs != want {
		t.Errorf("exit %d: %s, want %s", code, errs, want)
	}
}

// TestEmptyFileFlagIsRefused: --input "$F" with F unset made a job without its file, whose task ran.
func TestEmptyFileFlagIsRefused(t *testing.T) {
	b, addr := newFileBroker(t)
	for flag, want := range map[string]string{
		"--input": "names no file", "--input-each": "must be PATTERN:PATH", "--input-url": "must be URL:PATH",
	} {
		for _, command := range []string{"submit", "run"} {
			code, _, errs := runCLI(t, "", command, "--addr", addr, flag, "", "--", "true")
			if code != 2 || !strings.Contains(errs, want) || len(b.jobs) != 0 {
				t.Errorf("%s %s: exit %d, %q, %d jobs", command, flag, code, errs, len(b.jobs))
			}
		}
	}
	runCLI(t, "", "submit", "--addr", addr, "--output", "", "--", "true")
	if len(b.jobs) == 1 && len(b.jobs[0].Outputs.Paths) == 0 {
		t.Errorf("an empty --output was left out: %+v", b.jobs[0])
	}
}

// TestFetchWaitsForFailures a moment: what comes meanwhile is fetched, and of what does not come it is said why.
func TestFetchWaitsForFailures(t *testing.T) {
	coming := wire.FilesAway{Why: "its files are at site-2, and are fetched", Coming: true}
	lost := wire.FilesAway{Why: "its files were not brought home: site-2 has deleted them"}
	for _, c := range []struct {
		away []wire.FilesAway
		told string
	}{
		{[]wire.FilesAway{coming, {}}, "fetched 1 file, 4 B\n"},
		{[]wire.FilesAway{coming, lost}, "fetched 1 file, 4 B\nnot from site-1.1/0, which is failed: " + lost.Why + "\n"},
	} {
		b, addr := newFileBroker(t)
		inFolder(t, nil)
		b.left, b.away = map[string]string{"log": "half"}, c.away
		if code, _, errs := runCLI(t, "", "fetch", "--addr", addr, "site-1.1"); code != 0 || errs != c.told {
			t.Errorf("exit %d: %s, want %s", code, errs, c.told)
		}
		if len(b.away) != 1 {
			t.Errorf("it was asked %d times too few", len(b.away)-1)
		}
	}
}
