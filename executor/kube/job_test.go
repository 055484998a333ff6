package kube

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// bare is a handler that has no cluster.
func bare(t *testing.T, cfg Config) *Handler {
	t.Helper()
	cfg.Dir, cfg.Site, cfg.Cluster = "unused", "site-2", InCluster
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg = cfg.withDefaults()
	k, err := cfg.Keeping.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Keeping = k
	h := &Handler{cfg: cfg, id: "abcdefghijklmnop", api: &api{namespace: "federation"}, leases: &leases{}}
	h.works = &workSet{home: h.id}
	h.addBuilders()
	return h
}

// TestJob shows the whole of what is asked for: everything that can be
// configured, and nothing that need not be.
func TestJob(t *testing.T) {
	task := executor.Task{
		ID: executor.ID{Job: "site-1.42", Task: 3, Attempt: 2, Token: 77}, Owner: "site-1", Site: "site-2", Machine: "kube/node-7",
		Need: executor.Resources{MilliCPU: 2000, MemMiB: 512, GPU: 1}, Image: "alpine", Command: []string{"sh", "-c", "echo $(date) $$"},
		Env: map[string]string{"COLOR": "red", "CLOUDSHARE_TOKEN": "forged"}, Timeout: 90 * time.Second,
	}
	filed := task
	filed.Outputs = executor.Outputs{Paths: []string{"out/$1"}, MaxBytes: 5 << 20}
	dog := Watchdog{Image: "registry.example.org/cloudshare:1", Listen: "0.0.0.0:7703", URL: "http://broker:7703"}
	small := task
	small.Need, small.Timeout, small.Env, small.Command = executor.Resources{MilliCPU: 1000}, 0, nil, nil
	for name, c := range map[string]struct {
		cfg  Config
		task executor.Task
	}{
		"full.yaml": {Config{
			Federation: "7b0c", NodeSelector: []string{"pool=lent"}, Tolerations: []string{"lent=yes:NoSchedule", "spot"},
			ServiceAccount: "tasks", PriorityClass: "low", PullSecrets: []string{"registry"}, PullPolicy: "Always", User: "1000:2000",
			Foreign:  executor.NetworkOutbound,
			ReadOnly: true, PrivateDir: true, ScratchMiB: 1024, Mounts: []string{"/data:/data:ro"},
		}, task},
		"least.yaml": {Config{}, small},
		// Under a watchdog.
		"watched.yaml": {Config{Watchdog: dog}, task},
		// With files, of this site's own.
		"files.yaml": {Config{Watchdog: dog, ScratchMiB: 1024, ReadOnly: true}, filed},
	} {
		h := bare(t, c.cfg)
		w := h.works.newWork(attempts.NewAttempt(c.task))
		w.image = "docker.io/library/alpine:latest"
		w.carried = isCarried(&c.task)
		w.watched = c.cfg.Watchdog != Watchdog{} && !w.carried
		if w.carried {
			w.files, w.in, w.disk = 2, 3<<20, true
		}
		j, err := h.specs.job(w, "node-7")
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err = json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		if b, err = yaml.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		goldenfile.Match(t, name, string(b))
	}
}

// TestNames: whatever an attempt is called, its Job's name and labels are such as
// Kubernetes takes, and no two attempts or data folders have one in common.
func TestNames(t *testing.T) {
	seen := map[string]executor.ID{}
	rapid.Check(t, func(t *rapid.T) {
		id := executor.ID{
			Job:  rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,80}[a-z0-9])?\.[0-9]{1,20}`).Draw(t, "job"),
			Task: rapid.Uint32().Draw(t, "task"), Attempt: rapid.Uint32().Draw(t, "attempt"), Token: rapid.Uint64().Draw(t, "token"),
		}
		name := jobName("home", id)
		if len(name) > maxLabel-6 || len(validation.IsDNS1123Label(name)) > 0 {
			t.Fatalf("%s: name %q", id, name)
		}
		if other, twice := seen[name]; twice && other != id {
			t.Fatalf("%s and %s are both %s", id, other, name)
		}
		seen[name] = id
		if jobName("other", id) == name {
			t.Fatalf("%s has the same name in two data folders", id)
		}
		if v := labelValue(id.String()); len(validation.IsValidLabelValue(v)) > 0 || v == "" {
			t.Fatalf("%s: label %q", id, v)
		}
	})
	for _, text := range []string{"", "a", "ä", "-x-", strings.Repeat("x", 64), strings.Repeat("-", 64), "a b"} {
		if v := labelValue(text); len(validation.IsValidLabelValue(v)) > 0 {
			t.Errorf("%q: label %q", text, v)
		}
	}
}

// TestEscape: Kubernetes' expansion, as its documentation has it, undoes it.
func TestEscape(t *testing.T) {
	undo := regexp.MustCompile(`\$(\$|\([A-Za-z_][A-Za-z0-9_]*\)|)`)
	for _, text := range []string{"", "$", "$$", "$(HOME)", "$$(HOME)", "a$b$(c", "100$"} {
		got := undo.ReplaceAllStringFunc(escape(text), func(s string) string {
			if s == "$$" {
				return "$"
			}
			return "(expanded)"
		})
		if got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestBound: the inequality of DESIGN.md.
func TestBound(t *testing.T) {
	h := bare(t, Config{StartLimit: time.Minute, ControlLag: 20 * time.Second, NodeLag: 5 * time.Second})
	if d, ok := h.Bound(executor.Task{}); ok {
		t.Errorf("without a timeout: %s", d)
	}
	d, ok := h.Bound(executor.Task{Timeout: 1500 * time.Millisecond})
	if want := 20*time.Second + 2*62*time.Second + time.Second + 5*time.Second; !ok || d != want {
		t.Errorf("got %s, %v; want %s", d, ok, want)
	}
}
